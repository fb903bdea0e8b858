# ruff: noqa: S608  only constants are inserted into statements
"""Losses of sites: detection, records, and the command that is run on a loss."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from unlost.check.visit_store import SiteVisit, VisitDatabase, VisitStage
from unlost.errors import UsageError
from unlost.sqlite import decode_text, encode_text, transaction
from unlost.watch.site_health import HealthCheck, KnownPage, SiteHealth

MIN_GONE_VISITS = 2
"""Number of visits that must find a site gone before it counts as lost."""
CONFIRM_SECONDS = 20 * 3600.0
"""Minimum time between the first and the last of these visits.

Most outages are over within a day and are no losses, even if a site is visited every ten minutes. The time is a little
less than a day, so that the second of two daily visits confirms the loss even if it begins earlier in the day.
"""
MAX_WAIT_VISITS = 7
"""Number of visits, and of days, after which a site that is only temporarily unavailable also counts as lost."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class VisitHealth:
    """Health of a site at one visit.

    Attributes:
        visit: The visit's id.
        time: Start of the visit, in seconds since 1970; None if the clock was wrong.
        health: The health.
        reason: Explanation of the health.
    """

    visit: int
    time: float | None
    health: SiteHealth
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DetectedLoss:
    """A confirmed loss.

    Attributes:
        kind: Health of the site at the last visit.
        reason: Explanation.
        since: Id of the first visit that found the site gone.
    """

    kind: SiteHealth
    reason: str
    since: int


def detect_loss(visits: Sequence[VisitHealth]) -> DetectedLoss | None:
    """Return the loss of a site, given its visits in order; None if the site is not lost, or that is not confirmed yet.

    A visit that finds the site fine, or that robots.txt forbids, resets the count. A visit at which the site is
    temporarily unavailable neither counts nor resets it.

    >>> for_sale = (SiteHealth.PARKED, "for sale")
    >>> visits = [VisitHealth(1, 0.0, SiteHealth.FINE), VisitHealth(2, 9e4, *for_sale), VisitHealth(3, 18e4, *for_sale)]
    >>> detect_loss(visits[:2]), detect_loss(visits)
    (None, DetectedLoss(kind=<SiteHealth.PARKED: 'parked'>, reason='for sale', since=2))
    """
    run = _visits_since_fine(visits)
    gone = [each for each in run if each.health.is_gone]
    if len(gone) >= MIN_GONE_VISITS and _has_elapsed(gone[0], run[-1], CONFIRM_SECONDS):
        return DetectedLoss(gone[-1].health, gone[-1].reason, gone[0].visit)
    if len(run) >= MAX_WAIT_VISITS and _has_elapsed(
        run[0], run[-1], (MAX_WAIT_VISITS - 1) * _DAY - (_DAY - CONFIRM_SECONDS)
    ):
        return DetectedLoss(SiteHealth.UNRESPONSIVE, f"unavailable for days: {run[-1].reason}", run[0].visit)
    return None


def _visits_since_fine(visits: Sequence[VisitHealth]) -> Sequence[VisitHealth]:
    """Return the visits after the last one that found the site fine."""
    for index in range(len(visits) - 1, -1, -1):
        if visits[index].health in (SiteHealth.FINE, SiteHealth.UNSEEN):
            return visits[index + 1 :]
    return visits


def _has_elapsed(first: VisitHealth, last: VisitHealth, seconds: float) -> bool:
    """Return whether at least `seconds` lie between two visits; true if a date is unknown."""
    if first.time is None or last.time is None:
        return True
    return last.time - first.time >= seconds


_MAX_VISITS = 60  # visits considered for a loss; a longer run was confirmed long before


@dataclass(frozen=True, slots=True)
class SiteLoss:
    """A recorded loss. Times are in seconds since 1970.

    Attributes:
        id: The loss's id.
        kind: Health of the site when the loss was confirmed.
        reason: Explanation.
        since: When the site was first found gone.
        noticed: When the loss was confirmed.
        over: When the site was found again; None if it is still lost.
        is_notified: Whether the loss hook was run.
    """

    id: int
    kind: SiteHealth
    reason: str
    since: float
    noticed: float
    over: float | None
    is_notified: bool


class LossStore:
    """The database tables of one site: known pages, health at each visit, and losses."""

    def __init__(self, file: VisitDatabase, site: int) -> None:
        self._data = file.connection
        self._site = site

    def known_pages(self) -> list[KnownPage]:
        """Return the known pages: good pages of the last fine visit."""
        rows = self._data.execute(
            "SELECT uri, datetime, digest, text FROM page WHERE site = ? ORDER BY place", (self._site,)
        )
        return [
            KnownPage(decode_text(uri), datetime, digest, decode_text(text)) for uri, datetime, digest, text in rows
        ]

    def record_health(self, visit: SiteVisit, check: HealthCheck) -> None:
        """Store the health at a visit and replace the known pages, in one transaction."""
        with transaction(self._data):
            self._data.execute(
                "UPDATE visit SET look = ?, reason = ? WHERE id = ?",
                (check.health, encode_text(check.reason), visit.id),
            )
            self._data.execute("DELETE FROM page WHERE site = ?", (self._site,))
            self._data.executemany(
                "INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (self._site, index, encode_text(each.uri), each.datetime, each.digest, encode_text(each.text))
                    for index, each in enumerate(check.pages)
                ],
            )

    def health_at(self, visit: SiteVisit) -> HealthCheck | None:
        """Return the health at a visit; None if it was not checked yet."""
        row = self._data.execute("SELECT look, reason FROM visit WHERE id = ?", (visit.id,)).fetchone()
        if row is None or row[0] is None:
            return None
        return HealthCheck(SiteHealth(row[0]), decode_text(row[1]) or "", tuple(self.known_pages()))

    def recent_health(self) -> list[VisitHealth]:
        """Return the health at the last finished visits, in order."""
        rows = self._data.execute(
            "SELECT id, time, is_dated, look, reason FROM visit WHERE site = ? AND stage = ? AND look IS NOT NULL "
            "ORDER BY id DESC LIMIT ?",
            (self._site, VisitStage.DONE, _MAX_VISITS),
        ).fetchall()
        return [
            VisitHealth(visit_id, time if is_dated else None, SiteHealth(health), decode_text(reason) or "")
            for visit_id, time, is_dated, health, reason in reversed(rows)
        ]

    def last_loss(self) -> SiteLoss | None:
        """Return the last loss, current or past; None if there was none."""
        return next(iter(self._losses("DESC LIMIT 1")), None)

    def all_losses(self) -> list[SiteLoss]:
        """Return all losses in order."""
        return self._losses("ASC")

    def record_loss(self, visit: SiteVisit, loss: DetectedLoss) -> None:
        """Record a loss."""
        self._data.execute(
            "INSERT INTO loss (site, visit, kind, reason, since) VALUES (?, ?, ?, ?, ?)",
            (self._site, visit.id, loss.kind, encode_text(loss.reason), loss.since),
        )

    def record_recovery(self, visit: SiteVisit) -> None:
        """Record that the site is back."""
        self._data.execute("UPDATE loss SET over = ? WHERE site = ? AND over IS NULL", (visit.id, self._site))

    def mark_notified(self, loss: SiteLoss) -> None:
        """Record that the loss hook was run."""
        self._data.execute("UPDATE loss SET is_told = 1 WHERE id = ?", (loss.id,))

    def _losses(self, order: str) -> list[SiteLoss]:
        rows = self._data.execute(
            "SELECT id, kind, reason, (SELECT time FROM visit WHERE id = since), (SELECT time FROM visit WHERE "
            "id = loss.visit), (SELECT time FROM visit WHERE id = over), is_told FROM loss WHERE site = ? "
            f"ORDER BY id {order}",
            (self._site,),
        )
        return [
            SiteLoss(loss_id, SiteHealth(kind), decode_text(reason), since, noticed, over, bool(is_notified))
            for loss_id, kind, reason, since, noticed, over, is_notified in rows
        ]


@dataclass(frozen=True, slots=True)
class LossHook:
    """A command that is run on a loss. It is executed without a shell."""

    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "LossHook":
        """Parse a command line with the quoting rules of a POSIX shell. Raises UsageError.

        >>> LossHook.parse("mail -s 'a site is lost' me@example.org").arguments
        ('mail', '-s', 'a site is lost', 'me@example.org')
        """
        try:
            arguments = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--on-loss: not a command: {error}") from error
        if not arguments:
            raise UsageError("--on-loss: expected a command")
        return cls(tuple(arguments))

    def run(self, url: str, kind: str, reason: str, since: str) -> str | None:
        """Run the command and wait for it. Returns an error message, or None on success.

        The URL of the site and the kind of loss are appended to the arguments. The environment variables UNLOST_SITE,
        UNLOST_LOSS, UNLOST_REASON and UNLOST_SINCE contain the URL, the kind, the reason and the date. Text that comes
        from the site is never part of a command line that a shell parses.
        """
        # Environment variables and arguments cannot contain NUL, which `_environment_text` removes.
        variables = {"SITE": url, "LOSS": kind, "REASON": reason, "SINCE": since}
        environment = os.environ | {f"UNLOST_{name}": _environment_text(value) for name, value in variables.items()}
        try:
            process = subprocess.run(  # noqa: S603  the user's own command
                [*self.arguments, _environment_text(url), kind], env=environment, check=False, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            return f"{self.arguments[0]}: {error.strerror or error}"
        return None if process.returncode == 0 else f"{self.arguments[0]}: ended with {process.returncode}"


def _environment_text(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()
