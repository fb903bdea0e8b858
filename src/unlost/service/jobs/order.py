"""What somebody orders: a lost site or page, from which archives and dates, and whom to write to."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from unicodedata import category

from unlost import dates
from unlost.archives.spelling import asked
from unlost.errors import DateError, UriError, UsageError
from unlost.recover.plan import Plan, Policy
from unlost.recover.scope import Scope
from unlost.shown.language import LANGUAGES
from unlost.uri.naming import name_of

FORMS = ("zip", "tar.gz", "wacz")
"""What can be picked up; the first is that of people who say nothing."""

MAX_URL = 2_000
"""Characters of an address: pages have no longer ones."""
MAX_NAME = 200
MAX_MAIL = 254
"""Characters of a mail address: what RFC 5321 leaves for it."""

_MAX_ARCHIVES = 100
# Narrower than what mail allows, on purpose: no quotes, comments, letters beyond ASCII before the @, or anything a
# header acts on.
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_FIELDS = ("url", "mail", "name", "page", "archives", "at", "from", "to", "windows", "policy", "format", "language")


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be recovered, and for whom.

    mail, name: whom to write to; both empty once the job was removed.
    page: only this page, with what is needed to show it; else the whole site.
    archives: ids of those to ask; none for all that are on. first, last: dates of captures, 14 digits.
    windows: whether the names of files are such as Windows takes.
    at: the date, 14 digits, to which captures should be close; None for the last ones.
    form: the package that its owner wants; all are made. language: of letters to the owner.
    """

    url: str
    mail: str = ""
    name: str = ""
    page: bool = False
    archives: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    windows: bool = True
    policy: Policy = Policy.COMPLETE
    at: str | None = None
    form: str = "zip"
    language: str = "en"

    def plan(self) -> Plan:
        """Return what a recovery is told."""
        return Plan(self.url, page=self.page, policy=self.policy, at=self.at, first=self.first, last=self.last)

    def to_json(self) -> dict[str, object]:
        """Return it as JSON has it, for the database."""
        return {**asdict(self), "archives": list(self.archives), "policy": self.policy.value}


def kept_order(values: Mapping[str, object]) -> Order:
    """Return what `to_json` gave."""
    found: dict[str, Any] = dict(values)
    found["archives"], found["policy"] = tuple(found["archives"]), Policy(found["policy"])
    return Order(**found)


def order_of(values: object, known: Collection[str]) -> Order:
    """Return the order in an object of JSON that somebody sent, of which nothing is believed.

    Of a whole site, everything listed is fetched unless another policy is named. known: the ids of archives.
    Raises UsageError, which says the field and what was expected.
    """
    if not isinstance(values, dict):
        raise UsageError("expected an object with url and mail")
    if unknown := sorted(set(values) - set(_FIELDS)):
        raise UsageError(f"{str(unknown[0])[:50]}: no such field: expected {', '.join(_FIELDS)}")
    page = _switch(values, "page")
    default = Policy.KNOWLEDGEABLE if page else Policy.COMPLETE
    first, last = _date(values, "from", up=False), _date(values, "to", up=True)
    if first and last and first > last:
        raise UsageError("from is later than to: nothing lies between")
    order = Order(
        _url(values),
        _mail(values),
        _text(values, "name", MAX_NAME),
        page,
        _archives(values, known),
        first,
        last,
        _switch(values, "windows", default=True),
        _policy(values, default),
        _date(values, "at", up=False),
        _choice(values, "format", FORMS),
        _choice(values, "language", LANGUAGES),
    )
    try:
        Scope.of(order.plan())
    except UriError as error:
        raise UsageError(f"url: {error}") from None
    return order


def _text(values: Mapping[str, object], name: str, limit: int) -> str:
    found = values.get(name)
    text = "" if found is None else found
    if not isinstance(text, str) or len(text) > limit or not text.isprintable():
        raise UsageError(f"{name}: expected one line of text, of at most {limit} characters")
    return text.strip()


def _url(values: Mapping[str, object]) -> str:
    text = _text(values, "url", MAX_URL)
    if not text:
        raise UsageError("url: expected the address of the lost site or page")
    try:
        url = asked(text)
    except UriError as error:
        raise UsageError(f"url: {error}") from None
    if len(url) > 3 * MAX_URL:
        raise UsageError(f"url: expected at most {MAX_URL} characters")
    return url


def _mail(values: Mapping[str, object]) -> str:
    mail = ascii_mail(_text(values, "mail", MAX_MAIL))
    if not _MAIL.fullmatch(mail) or ".." in mail:
        raise UsageError("mail: expected your mail address, such as you@example.org")
    return mail


def ascii_mail(mail: str) -> str:
    """Return a mail address with an international domain as ASCII, which every mail server takes.

    >>> ascii_mail("me@bücher.example"), ascii_mail("me@b:ü"), ascii_mail("mé@example.org")
    ('me@xn--bcher-kva.example', 'me@b:ü', 'mé@example.org')
    """
    user, _, domain = mail.rpartition("@")
    if domain.isascii() or not all(char in "-." or category(char)[0] in "LMN" for char in domain):
        return mail
    try:
        # The first label keeps the name from losing a `www`.
        name = name_of(f"http://mail.{domain}/")
    except UriError:
        return mail
    return f"{user}@{name.partition('/')[0].removeprefix('mail.')}"


def _switch(values: Mapping[str, object], name: str, *, default: bool = False) -> bool:
    found = values.get(name, default)
    if not isinstance(found, bool):
        raise UsageError(f"{name}: expected true or false")
    return found


def _archives(values: Mapping[str, object], known: Collection[str]) -> tuple[str, ...]:
    found = values.get("archives")
    if found is None:
        return ()
    if not isinstance(found, list) or len(found) > _MAX_ARCHIVES or not all(isinstance(each, str) for each in found):
        raise UsageError("archives: expected a list of ids of archives")
    if unknown := [each for each in found if each not in known]:
        raise UsageError(f"archives: no archive {unknown[0][:50]!r}: expected some of {', '.join(sorted(known))}")
    return tuple(dict.fromkeys(found))


def _date(values: Mapping[str, object], name: str, *, up: bool) -> str | None:
    text = _text(values, name, 20)
    if not text:
        return None
    try:
        return dates.pad(text.replace("-", ""), up=up)
    except DateError as error:
        raise UsageError(f"{name}: {error}") from None


def _choice(values: Mapping[str, object], name: str, known: Sequence[str]) -> str:
    """Return one of several words; the first if none was said."""
    found = values.get(name)
    if found is None:
        return known[0]
    if not isinstance(found, str) or found not in known:
        raise UsageError(f"{name}: expected one of {', '.join(known)}")
    return found


def _policy(values: Mapping[str, object], default: Policy) -> Policy:
    found = values.get("policy")
    if found is None:
        return default
    if not isinstance(found, str) or found not in set(Policy):
        raise UsageError(f"policy: expected one of {', '.join(Policy)}")
    return Policy(found)
