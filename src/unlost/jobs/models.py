"""Orders and jobs: the data classes, and the parser for orders from untrusted JSON."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any
from unicodedata import category

from unlost import dates
from unlost.errors import DateError, UriError, UsageError
from unlost.recover.options import RecoverOptions, RecoverPolicy
from unlost.recover.scope import RecoveryScope
from unlost.report.format import LANGUAGES
from unlost.uri.names import page_name
from unlost.uri.normalize import normalize_input_url

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

    >>> encode_mail_domain("me@bücher.example"), encode_mail_domain("me@b:ü"), encode_mail_domain("mé@example.org")
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


class JobState(StrEnum):
    """How a job stands."""

    PENDING = "pending"
    """Not confirmed by mail yet."""
    QUEUED = "queued"
    PROCESSING = "processing"
    """A worker has it, or had it until its lease ran out."""
    PAUSED = "paused"
    """Whoever looks after jobs holds it; what was recovered is kept, and so is its turn."""
    COMPLETE = "complete"
    """Can be picked up."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    REMOVED = "removed"
    """Its files are gone, and so is whose it was; what came of it is history."""


ENDED_STATES = (JobState.COMPLETE, JobState.FAILED, JobState.CANCELLED)
"""States that a job stays in until somebody wants something else, or its time is over."""
UNFINISHED_STATES = (JobState.PENDING, JobState.QUEUED, JobState.PROCESSING, JobState.PAUSED)


class JobStage(StrEnum):
    """What a worker is at: whoever takes a job over goes on there."""

    RECOVERING = "recovering"
    PACKING = "packing"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a recovery is: numbers of resources."""

    recovered: int = 0
    missing: int = 0
    queued: int = 0
    stage: JobStage = JobStage.RECOVERING

    @property
    def share(self) -> float:
        """Processed / (processed + queued), from 0 to 1; 0 as long as nothing is known."""
        processed = self.recovered + self.missing
        return processed / (processed + self.queued) if processed else 0.0


@dataclass(frozen=True, slots=True)
class JobPackage:
    """A file to pick up. form: `zip`, `tar.gz` or `wacz`. file: below the job's folder. sha256: in hex.

    start: the path in it that shows the page that was ordered; empty for a WACZ, and for packages of earlier versions.
    """

    form: str
    file: str
    size: int
    sha256: str
    start: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Times are seconds since 1970, None where something has not happened.

    turn: its place in the order of the queue: the lowest goes first, of equal ones the lowest number.
    not_before: when it may be begun: archives have daily limits, and may want to be left alone. Of a job that is
        complete, when what failed is retried in the background; 0 if it is not.
    generation: of its lease: it counts how often the job was given to a worker, and fences off all earlier ones.
    worker, lease_until: who has it, and until when that is certain. for_worker: who alone may begin it.
    crashes: how many workers were lost with it since it last got on. rounds: of recovering that brought nothing new.
    picked_up: when it was first downloaded to its end. reminders: how many were sent for the state that it is in.
    message: what there is to say of how it ended. packages: what can be picked up. figures: what came back,
        in numbers; empty unless it is complete, or was when it was removed.
    """

    number: int
    order: Order
    state: JobState
    submitted: float
    changed: float
    confirmed: float | None = None
    begun: float | None = None
    ended: float | None = None
    picked_up: float | None = None
    turn: int = 0
    not_before: float = 0.0
    generation: int = 0
    worker: str | None = None
    lease_until: float | None = None
    for_worker: str | None = None
    crashes: int = 0
    rounds: int = 0
    reminders: int = 0
    progress: JobProgress = field(default_factory=JobProgress)
    message: str = ""
    packages: tuple[JobPackage, ...] = ()
    figures: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_retried(self) -> bool:
        """Whether what failed is retried in the background, while the packages of an earlier round are offered."""
        return bool(self.packages and self.figures) and self.state in UNFINISHED_STATES

    @property
    def is_offered(self) -> bool:
        """Whether its packages can be picked up."""
        return bool(self.packages) and (self.state is JobState.COMPLETE or self.is_retried)
