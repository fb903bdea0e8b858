"""SQL tables of the job database, and conversion of jobs to and from rows.

The tables match the result of the last migration; a test compares them.
"""

from dataclasses import asdict
from hashlib import sha256
from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Float, Index, Integer, MetaData, Row, String, Table, Text, text

from unlost.jobs.models import Job, JobPackage, JobProgress, JobStage, JobState, encode_mail_domain, order_from_json
from unlost.jobs.states import RetentionPolicy

METADATA = MetaData()
# SQLite assigns numbers only to a column of type INTEGER, which is an alias of the rowid.
_NUMBER = BigInteger().with_variant(Integer, "sqlite")
JOBS = Table(
    "job",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("customer", String(64), nullable=False, comment="a hash of the mail address, to count orders by"),
    Column("customer_order", JSON, nullable=False),
    Column("state", String(16), nullable=False),
    Column("submitted", Float, nullable=False),
    Column("changed", Float, nullable=False),
    Column("confirmed", Float),
    Column("begun", Float),
    Column("ended", Float),
    Column("picked_up", Float),
    Column("turn", BigInteger, nullable=False),
    Column("not_before", Float, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("worker", String(200)),
    Column("lease_until", Float),
    Column("for_worker", String(200)),
    Column("crashes", Integer, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("reminders", Integer, nullable=False),
    Column("recovered", BigInteger, nullable=False),
    Column("missing", BigInteger, nullable=False),
    Column("queued", BigInteger, nullable=False),
    Column("stage", String(16), nullable=False),
    Column("message", Text, nullable=False),
    Column("packages", JSON, nullable=False),
    Column("figures", JSON, nullable=False),
    Column("due", Float, comment="when there is something to do about it that no worker does"),
    Index("job_turn", "state", "turn", "number"),
    Index("job_due", "due"),
    Index("job_customer", "customer", "state"),
    Index("job_not_before", "state", "not_before"),
)
WORKERS = Table(
    "worker",
    METADATA,
    Column("name", String(200), primary_key=True),
    Column("begun", Float, nullable=False),
    Column("seen", Float, nullable=False),
    Column("version", String(32), nullable=False),
)
RATE_LIMITS = Table(
    "account",
    METADATA,
    Column("archive", String(300), primary_key=True),
    Column("ledger", Text, nullable=False),
)
MAILS = Table(
    "letter",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("job", BigInteger, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("due", Float, comment="None once it was sent, or given up"),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("sent", Float),
    Column("message", Text, nullable=False, server_default=text("''")),
    Column(
        "fair_key",
        String(64),
        nullable=False,
        server_default=text("''"),
        comment="a hash; every key gets an equal share of what is sent",
    ),
    Index("letter_due", "due"),
    Index("letter_job", "job"),
    Index("letter_sent", "sent"),
)
PENDING_ORDERS = Table(
    "pending_order",
    METADATA,
    Column("job", BigInteger, primary_key=True, autoincrement=False),
    Column("customer", String(64), nullable=False, comment="a hash of the mail address"),
    Column("mail_domain", String(64), nullable=False, comment="a hash"),
    Column("network", String(64), nullable=False, comment="a hash of the IPv4 /24 or IPv6 /56"),
    Column("wide_network", String(64), nullable=False, comment="a hash of the IPv6 /40; empty for IPv4"),
    *(Index(f"pending_order_{name}", name) for name in ("customer", "mail_domain", "network", "wide_network")),
)
UNSUBSCRIBED = Table(
    "unsubscribed",
    METADATA,
    Column("customer", String(64), primary_key=True, comment="a hash of the mail address"),
    Column("since", Float, nullable=False),
)
TOKENS = Table(
    "token",
    METADATA,
    Column("hash", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("made", Float, nullable=False),
)
EVENTS = Table(
    "event",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("job", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("what", String(32), nullable=False),
    Column("detail", Text, nullable=False),
    Index("event_job", "job", "number"),
)
TALLIES = Table(
    "tally",
    METADATA,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("kind", String(16), nullable=False),
    Column("who", String(64), nullable=False, comment="a hash"),
    Column("at", Float, nullable=False),
    Index("tally_who", "kind", "who", "at"),
    Index("tally_at", "at"),
)
SETTINGS = Table(
    "setting",
    METADATA,
    Column("name", String(64), primary_key=True),
    Column("value", JSON, nullable=False),
)
BLOCKED = Table(
    "blocked",
    METADATA,
    Column("domain", String(255), primary_key=True),
    Column("since", Float, nullable=False),
    Column("reason", Text, nullable=False),
)
ADMINS = Table(
    "admin",
    METADATA,
    Column("name", String(200), primary_key=True),
    Column("password", String(300), nullable=False, comment="a hash, by scrypt"),
    Column("made", Float, nullable=False),
)
SESSIONS = Table(
    "session",
    METADATA,
    Column("hash", String(64), primary_key=True),
    Column("admin", String(200), nullable=False),
    Column("begun", Float, nullable=False),
    Column("seen", Float, nullable=False),
)


_PLAIN_COLUMNS = (
    "submitted", "changed", "confirmed", "begun", "ended", "picked_up", "turn", "not_before", "generation", "worker",
    "lease_until", "for_worker", "crashes", "rounds", "reminders", "message",
)  # fmt: skip


def hash_customer(mail: str) -> str:
    """Return a hash that identifies the customer with an email address. Letter case and a `+` suffix are ignored.

    >>> hash_customer("Me+lost@example.org") == hash_customer("me@example.org")
    True
    >>> hash_customer("me@bücher.example") == hash_customer("me@xn--bcher-kva.example")
    True
    """
    user, _, domain = encode_mail_domain(mail).lower().rpartition("@")
    return sha256(f"{user.partition('+')[0] or user}@{domain}".encode()).hexdigest() if mail else ""


def job_to_row(job: Job, retention: RetentionPolicy) -> dict[str, Any]:
    """Return the columns of a job except its number."""
    return {
        **{name: getattr(job, name) for name in _PLAIN_COLUMNS},
        "customer": hash_customer(job.order.mail),
        "customer_order": job.order.to_json(),
        "state": job.state.value,
        "recovered": job.progress.recovered,
        "missing": job.progress.missing,
        "queued": job.progress.queued,
        "stage": job.progress.stage.value,
        "packages": [asdict(each) for each in job.packages],
        "figures": dict(job.figures),
        "due": retention.next_action_time(job),
    }


def job_from_row(row: Row[Any]) -> Job:
    """Create a job from a row."""
    values = row._mapping  # noqa: SLF001  public in spite of the underscore
    return Job(
        number=values["number"],
        order=order_from_json(values["customer_order"]),
        state=JobState(values["state"]),
        progress=JobProgress(values["recovered"], values["missing"], values["queued"], JobStage(values["stage"])),
        packages=tuple(JobPackage(**each) for each in values["packages"]),
        figures=values["figures"],
        **{name: values[name] for name in _PLAIN_COLUMNS},
    )
