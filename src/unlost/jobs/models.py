"""Orders and jobs: the data classes, and the parser for orders from untrusted JSON."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any
from unicodedata import category

from unlost import dates
from unlost.crawl.scope import host_of_name
from unlost.errors import DateError, UriError, UsageError
from unlost.export.formats import DOWNLOAD_FORMATS
from unlost.recovery.options import MAX_REQUISITE_BYTES, MAX_REQUISITE_FILES, RecoverOptions, RecoverPolicy
from unlost.recovery.scope import RecoveryScope
from unlost.report.format import LANGUAGES
from unlost.uri.names import page_name
from unlost.uri.normalize import normalize_input_url

PACKAGE_FORMATS = tuple(DOWNLOAD_FORMATS)
"""Formats of packages. The first is the default."""
MAX_URL = 2_000
"""Maximum length of a URL in an order, in characters."""
MAX_NAME = 200
MAX_MAIL = 254
"""Maximum length of an email address, in characters (RFC 5321, section 4.5.3.1)."""
_MAX_ARCHIVES = 100
# Deliberately stricter than RFC 5321: no quoted strings or comments, no non-ASCII local part, no characters with a
# meaning in headers.
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
MAX_START_URLS = 100
"""Maximum number of further start URLs in an order."""
OPTION_FLAGS = (
    "subdomains", "ignore_case", "page_requisites", "include_left_out", "most_recent", "all_versions", "drop_rejected",
)  # fmt: skip
"""Fields of an order that are true or false, with the names and defaults of `RecoverOptions`."""
OPTION_NUMBERS = {
    "depth": (0, 1_000),
    "limit": (1, 10_000_000),
    "requisite_files": (0, MAX_REQUISITE_FILES),
    "requisite_bytes": (0, MAX_REQUISITE_BYTES),
    "requisite_lookups": (1, 10),
}
"""Fields of an order that are numbers, with minimum and maximum. An order may lower the limits on files of other hosts,
not raise them."""
_FIELDS = (
    "url", "mail", "name", "page", "archives", "at", "from", "to", "windows", "policy", "format", "language", "urls",
    *OPTION_FLAGS, *OPTION_NUMBERS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Order:
    """An order: what to recover, and for whom.

    Attributes without a description are those of `RecoverOptions`. Its `include` and `exclude` are missing on purpose:
    a regular expression of an anonymous user could occupy a worker for hours.

    Attributes:
        url: URL of the lost site or page.
        mail: Email address of the owner; empty once the job was removed.
        name: Name of the owner; empty once the job was removed.
        page: Recover only this page and its embedded resources, not the whole site.
        archives: IDs of the archives to query; empty for all that are enabled.
        first: Earliest date of captures, 14 digits.
        last: Latest date of captures, 14 digits.
        windows: Use file names that are valid on Windows.
        policy: Recovery policy.
        at: Preferred date of captures, 14 digits; None for the latest.
        form: Package format that the owner prefers. All formats are created.
        language: Language of emails to the owner.
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
    urls: tuple[str, ...] = ()
    subdomains: bool = False
    depth: int | None = None
    limit: int | None = None
    ignore_case: bool = False
    page_requisites: bool = True
    requisite_files: int = MAX_REQUISITE_FILES
    requisite_bytes: int = MAX_REQUISITE_BYTES
    requisite_lookups: int = 1
    include_left_out: bool = False
    most_recent: bool = False
    all_versions: bool = False
    drop_rejected: bool = False

    def recover_options(self) -> RecoverOptions:
        """Return the options of the recovery. Raises UsageError if they contradict each other."""
        shared = {each.name for each in fields(Order)} & {each.name for each in fields(RecoverOptions)}
        return RecoverOptions(**{name: getattr(self, name) for name in shared})

    def to_json(self) -> dict[str, object]:
        """Return the order as a JSON object for the database.

        Options with their default values are left out, so that workers of earlier versions can read the order.
        """
        values = {**asdict(self), "archives": list(self.archives), "policy": self.policy.value, "urls": list(self.urls)}
        defaults = {name: getattr(_DEFAULT_ORDER, name) for name in (*OPTION_FLAGS, *OPTION_NUMBERS)}
        defaults["urls"] = []
        return {name: value for name, value in values.items() if name not in defaults or value != defaults[name]}


_DEFAULT_ORDER = Order("")


def order_from_json(values: Mapping[str, object]) -> Order:
    """Parse the result of `Order.to_json`."""
    arguments: dict[str, Any] = dict(values)
    arguments["archives"], arguments["policy"] = tuple(arguments["archives"]), RecoverPolicy(arguments["policy"])
    arguments["urls"] = tuple(arguments.get("urls", ()))
    return Order(**arguments)


def parse_order(values: object, known_archives: Collection[str]) -> Order:
    """Parse and validate an order from untrusted JSON.

    The default policy is `KNOWLEDGEABLE` for a page and `COMPLETE` for a site.

    Args:
        values: The decoded JSON.
        known_archives: IDs of the archives that may be queried.

    Raises:
        UsageError: A field is invalid. The message names the field and the expected value.
    """
    if not isinstance(values, dict):
        raise UsageError("expected an object with url and mail")
    if unknown := sorted(set(values) - set(_FIELDS)):
        raise UsageError(f"{str(unknown[0])[:50]}: no such field: expected {', '.join(_FIELDS)}")
    page = _parse_flag(values, "page")
    default = RecoverPolicy.KNOWLEDGEABLE if page else RecoverPolicy.COMPLETE
    first, last = _parse_date(values, "from"), _parse_date(values, "to", round_up=True)
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
        _parse_date(values, "at"),
        _parse_choice(values, "format", PACKAGE_FORMATS),
        _parse_choice(values, "language", LANGUAGES),
        _parse_start_urls(values),
        **{name: _parse_flag(values, name, default=getattr(_DEFAULT_ORDER, name)) for name in OPTION_FLAGS},
        **{name: _parse_number(values, name) for name in OPTION_NUMBERS},
    )
    try:
        RecoveryScope.of(order.recover_options())
    except UriError as error:
        raise UsageError(f"url: {error}") from None
    return order


def _parse_text(values: Mapping[str, object], name: str, limit: int) -> str:
    value = values.get(name)
    text = "" if value is None else value
    if not isinstance(text, str) or len(text) > limit or not text.isprintable():
        raise UsageError(f"{name}: expected one line of text, of at most {limit} characters")
    return text.strip()


def _parse_number(values: Mapping[str, object], name: str) -> Any:  # noqa: ANN401  int, or None where that is the default
    number, (minimum, maximum) = values.get(name), OPTION_NUMBERS[name]
    if number is None:
        return getattr(_DEFAULT_ORDER, name)
    if not isinstance(number, int) or isinstance(number, bool) or not minimum <= number <= maximum:
        raise UsageError(f"{name}: expected a number from {minimum} to {maximum}")
    return number


def _parse_start_urls(values: Mapping[str, object]) -> tuple[str, ...]:
    urls = values.get("urls")
    if urls is None:
        return ()
    if not isinstance(urls, list) or len(urls) > MAX_START_URLS:
        raise UsageError(f"urls: expected a list of at most {MAX_START_URLS} URLs")
    start_urls = tuple(_parse_url({"urls": each}, "urls") for each in urls)
    host = host_of_name(page_name(_parse_url(values)))
    # The limits per host and the list of blocked hosts apply to `url` alone.
    if foreign := [each for each in start_urls if host_of_name(page_name(each)) != host]:
        raise UsageError(f"urls: expected URLs of {host}, found {foreign[0][:200]}")
    return start_urls


def _parse_url(values: Mapping[str, object], field_name: str = "url") -> str:
    text = _parse_text(values, field_name, MAX_URL)
    if not text:
        raise UsageError(f"{field_name}: expected the address of the lost site or page")
    try:
        url = normalize_input_url(text)
    except UriError as error:
        raise UsageError(f"{field_name}: {error}") from None
    if len(url) > 3 * MAX_URL:
        raise UsageError(f"{field_name}: expected at most {MAX_URL} characters")
    return url


def _parse_mail(values: Mapping[str, object]) -> str:
    mail = encode_mail_domain(_parse_text(values, "mail", MAX_MAIL))
    if not _MAIL.fullmatch(mail) or ".." in mail:
        raise UsageError("mail: expected your mail address, such as you@example.org")
    return mail


def encode_mail_domain(mail: str) -> str:
    """Return an email address with its international domain encoded in ASCII, which every mail server accepts.

    >>> encode_mail_domain("me@bücher.example"), encode_mail_domain("me@b:ü"), encode_mail_domain("mé@example.org")
    ('me@xn--bcher-kva.example', 'me@b:ü', 'mé@example.org')
    """
    user, _, domain = mail.rpartition("@")
    if domain.isascii() or not all(char in "-." or category(char)[0] in "LMN" for char in domain):
        return mail
    try:
        # `page_name` removes a leading `www`, so another label is prepended.
        name = page_name(f"http://mail.{domain}/")
    except UriError:
        return mail
    return f"{user}@{name.partition('/')[0].removeprefix('mail.')}"


def _parse_flag(values: Mapping[str, object], name: str, *, default: bool = False) -> bool:
    value = values.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"{name}: expected true or false")
    return value


def _parse_archives(values: Mapping[str, object], known: Collection[str]) -> tuple[str, ...]:
    value = values.get("archives")
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > _MAX_ARCHIVES or not all(isinstance(each, str) for each in value):
        raise UsageError("archives: expected a list of ids of archives")
    if unknown := [each for each in value if each not in known]:
        raise UsageError(f"archives: no archive {unknown[0][:50]!r}: expected some of {', '.join(sorted(known))}")
    return tuple(dict.fromkeys(value))


def _parse_date(values: Mapping[str, object], name: str, *, round_up: bool = False) -> str | None:
    text = _parse_text(values, name, 20)
    if not text:
        return None
    try:
        return dates.pad(text.replace("-", ""), round_up=round_up)
    except DateError as error:
        raise UsageError(f"{name}: {error}") from None


def _parse_choice(values: Mapping[str, object], name: str, known: Sequence[str]) -> str:
    """Return the value of a field, one of `known`; the first of these if the field is absent."""
    value = values.get(name)
    if value is None:
        return known[0]
    if not isinstance(value, str) or value not in known:
        raise UsageError(f"{name}: expected one of {', '.join(known)}")
    return value


def _parse_policy(values: Mapping[str, object], default: RecoverPolicy) -> RecoverPolicy:
    value = values.get("policy")
    if value is None:
        return default
    if not isinstance(value, str) or value not in set(RecoverPolicy):
        raise UsageError(f"policy: expected one of {', '.join(RecoverPolicy)}")
    return RecoverPolicy(value)


class JobState(StrEnum):
    """State of a job."""

    PENDING = "pending"
    """Not yet confirmed by email."""
    QUEUED = "queued"
    PROCESSING = "processing"
    """Claimed by a worker, whose lease may have expired."""
    PAUSED = "paused"
    """Suspended by an administrator. Recovered files and the position in the queue are retained."""
    COMPLETE = "complete"
    """Can be downloaded."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    REMOVED = "removed"
    """Files and personal data are deleted; the figures are retained for the history."""


ENDED_STATES = (JobState.COMPLETE, JobState.FAILED, JobState.CANCELLED)
"""States in which a job stays until it is retried or removed."""
UNFINISHED_STATES = (JobState.PENDING, JobState.QUEUED, JobState.PROCESSING, JobState.PAUSED)


class JobStage(StrEnum):
    """Stage of processing. Another worker that takes over a job resumes at its stage."""

    RECOVERING = "recovering"
    PACKING = "packing"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Progress of a recovery, in numbers of resources."""

    recovered: int = 0
    missing: int = 0
    queued: int = 0
    stage: JobStage = JobStage.RECOVERING

    @property
    def share(self) -> float:
        """Processed / (processed + queued), from 0 to 1; 0 while no resource was processed."""
        processed = self.recovered + self.missing
        return processed / (processed + self.queued) if processed else 0.0


@dataclass(frozen=True, slots=True)
class JobPackage:
    """A file to download.

    Attributes:
        form: `zip`, `tar.gz` or `wacz`.
        file: Path below the job's folder.
        size: Size in bytes.
        sha256: Digest in hex.
        start: Path in the package of the ordered page; empty for a WACZ, and for packages of earlier versions.
    """

    form: str
    file: str
    size: int
    sha256: str
    start: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A job. Times are in seconds since 1970, or None for an event that has not occurred.

    Attributes:
        number: Number of the job.
        order: What was ordered.
        state: Current state.
        submitted: When the order was received.
        changed: When the state changed last.
        confirmed: When the order was confirmed.
        begun: When a worker first claimed the job.
        ended: When the job last reached a final state.
        picked_up: When a package was first downloaded completely.
        turn: Sort key in the queue, ascending; jobs with equal keys are ordered by number.
        not_before: Earliest start, for archives with daily limits or a requested pause. For a complete job, the time at
            which failed resources are retried in the background; 0 if they are not.
        generation: Counts how often the job was claimed; a fencing token against workers that lost their lease.
        worker: Name of the worker that holds the lease.
        lease_until: When the lease expires.
        for_worker: The only worker that may claim the job, or None for any.
        crashes: Number of workers that lost their lease since the job last progressed.
        rounds: Number of rounds since the last one that recovered something new.
        reminders: Number of reminders sent in the current state.
        progress: Progress of the recovery.
        message: Remark about the result.
        packages: Files to download.
        figures: Statistics of the recovery; empty unless the job is or was complete.
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
        """Whether failed resources are retried in the background while the packages of an earlier round are offered."""
        return bool(self.packages and self.figures) and self.state in UNFINISHED_STATES

    @property
    def is_offered(self) -> bool:
        """Whether the packages can be downloaded."""
        return bool(self.packages) and (self.state is JobState.COMPLETE or self.is_retried)
