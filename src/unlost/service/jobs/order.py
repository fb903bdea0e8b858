"""What somebody orders: a lost site or page, from which archives and dates, and whom to write to."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from unicodedata import category

from unlost import dates
from unlost.archives.spelling import normalize_input_url
from unlost.errors import DateError, UriError, UsageError
from unlost.recover.plan import RecoverOptions, RecoverPolicy
from unlost.recover.scope import RecoveryScope
from unlost.shown.language import LANGUAGES
from unlost.uri.naming import page_name

PACKAGE_FORMATS = ("zip", "tar.gz", "wacz")
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
    policy: RecoverPolicy = RecoverPolicy.COMPLETE
    at: str | None = None
    form: str = "zip"
    language: str = "en"

    def recover_options(self) -> RecoverOptions:
        """Return what a recovery is told."""
        return RecoverOptions(
            self.url, page=self.page, policy=self.policy, at=self.at, first=self.first, last=self.last
        )

    def to_json(self) -> dict[str, object]:
        """Return it as JSON has it, for the database."""
        return {**asdict(self), "archives": list(self.archives), "policy": self.policy.value}


def order_from_json(values: Mapping[str, object]) -> Order:
    """Return what `to_json` gave."""
    found: dict[str, Any] = dict(values)
    found["archives"], found["policy"] = tuple(found["archives"]), RecoverPolicy(found["policy"])
    return Order(**found)


def parse_order(values: object, known_archives: Collection[str]) -> Order:
    """Return the order in an object of JSON that somebody sent, of which nothing is believed.

    Of a whole site, everything listed is fetched unless another policy is named. known: the ids of archives.
    Raises UsageError, which says the field and what was expected.
    """
    if not isinstance(values, dict):
        raise UsageError("expected an object with url and mail")
    if unknown := sorted(set(values) - set(_FIELDS)):
        raise UsageError(f"{str(unknown[0])[:50]}: no such field: expected {', '.join(_FIELDS)}")
    page = _parse_flag(values, "page")
    default = RecoverPolicy.KNOWLEDGEABLE if page else RecoverPolicy.COMPLETE
    first, last = _parse_date(values, "from", up=False), _parse_date(values, "to", up=True)
    if first and last and first > last:
        raise UsageError("from is later than to: nothing lies between")
    order = Order(
        _parse_url(values),
        _parse_mail(values),
        _parse_text(values, "name", MAX_NAME),
        page,
        _parse_archives(values, known_archives),
        first,
        last,
        _parse_flag(values, "windows", default=True),
        _parse_policy(values, default),
        _parse_date(values, "at", up=False),
        _parse_choice(values, "format", PACKAGE_FORMATS),
        _parse_choice(values, "language", LANGUAGES),
    )
    try:
        RecoveryScope.of(order.recover_options())
    except UriError as error:
        raise UsageError(f"url: {error}") from None
    return order


def _parse_text(values: Mapping[str, object], name: str, limit: int) -> str:
    found = values.get(name)
    text = "" if found is None else found
    if not isinstance(text, str) or len(text) > limit or not text.isprintable():
        raise UsageError(f"{name}: expected one line of text, of at most {limit} characters")
    return text.strip()


def _parse_url(values: Mapping[str, object]) -> str:
    text = _parse_text(values, "url", MAX_URL)
    if not text:
        raise UsageError("url: expected the address of the lost site or page")
    try:
        url = normalize_input_url(text)
    except UriError as error:
        raise UsageError(f"url: {error}") from None
    if len(url) > 3 * MAX_URL:
        raise UsageError(f"url: expected at most {MAX_URL} characters")
    return url


def _parse_mail(values: Mapping[str, object]) -> str:
    mail = encode_mail_domain(_parse_text(values, "mail", MAX_MAIL))
    if not _MAIL.fullmatch(mail) or ".." in mail:
        raise UsageError("mail: expected your mail address, such as you@example.org")
    return mail


def encode_mail_domain(mail: str) -> str:
    """Return a mail address with an international domain as ASCII, which every mail server takes.

    >>> ascii_mail("me@bücher.example"), ascii_mail("me@b:ü"), ascii_mail("mé@example.org")
    ('me@xn--bcher-kva.example', 'me@b:ü', 'mé@example.org')
    """
    user, _, domain = mail.rpartition("@")
    if domain.isascii() or not all(char in "-." or category(char)[0] in "LMN" for char in domain):
        return mail
    try:
        # The first label keeps the name from losing a `www`.
        name = page_name(f"http://mail.{domain}/")
    except UriError:
        return mail
    return f"{user}@{name.partition('/')[0].removeprefix('mail.')}"


def _parse_flag(values: Mapping[str, object], name: str, *, default: bool = False) -> bool:
    found = values.get(name, default)
    if not isinstance(found, bool):
        raise UsageError(f"{name}: expected true or false")
    return found


def _parse_archives(values: Mapping[str, object], known: Collection[str]) -> tuple[str, ...]:
    found = values.get("archives")
    if found is None:
        return ()
    if not isinstance(found, list) or len(found) > _MAX_ARCHIVES or not all(isinstance(each, str) for each in found):
        raise UsageError("archives: expected a list of ids of archives")
    if unknown := [each for each in found if each not in known]:
        raise UsageError(f"archives: no archive {unknown[0][:50]!r}: expected some of {', '.join(sorted(known))}")
    return tuple(dict.fromkeys(found))


def _parse_date(values: Mapping[str, object], name: str, *, up: bool) -> str | None:
    text = _parse_text(values, name, 20)
    if not text:
        return None
    try:
        return dates.pad(text.replace("-", ""), round_up=up)
    except DateError as error:
        raise UsageError(f"{name}: {error}") from None


def _parse_choice(values: Mapping[str, object], name: str, known: Sequence[str]) -> str:
    """Return one of several words; the first if none was said."""
    found = values.get(name)
    if found is None:
        return known[0]
    if not isinstance(found, str) or found not in known:
        raise UsageError(f"{name}: expected one of {', '.join(known)}")
    return found


def _parse_policy(values: Mapping[str, object], default: RecoverPolicy) -> RecoverPolicy:
    found = values.get("policy")
    if found is None:
        return default
    if not isinstance(found, str) or found not in set(RecoverPolicy):
        raise UsageError(f"policy: expected one of {', '.join(RecoverPolicy)}")
    return RecoverPolicy(found)
