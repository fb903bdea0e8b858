# ruff: noqa: S608  what is put into statements is our own
"""Losses of sites: when a site counts as lost, the record of losses, and the command that is run on a loss."""

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
"""So many visits must find a site gone before it is called lost."""
CONFIRM_SECONDS = 20 * 3600.0
"""And so long must the first of them be ago: an outage of some hours is none for a watch that looks every ten minutes,
either. A little less than a day, so that it is the second of daily visits, whenever on the day they come."""
MAX_WAIT_VISITS = 7
"""A site that only says, at so many visits and for as many days, that it is away for a while, is lost, too."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class VisitHealth:
    """How a site looked at one visit. time: in seconds since 1970; None if the clock cannot be believed."""

    visit: int
    time: float | None
    health: SiteHealth
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DetectedLoss:
    """That a site is lost. kind: how it looked at last. since: the first visit at which it was gone."""

    kind: SiteHealth
    reason: str
    since: int


def detect_loss(visits: Sequence[VisitHealth]) -> DetectedLoss | None:
    """Return that a site is lost, by its visits in their order; None if it is not, or that is not certain yet.

    A fine look, or one that was not allowed, begins everything anew; one at which the site says to wait neither counts
    nor makes it good.

    >>> looks = [Seen(1, 0.0, Look.FINE), Seen(2, 9e4, Look.PARKED, "for sale"), Seen(3, 18e4, Look.PARKED, "for sale")]
    >>> loss(looks[:2]), loss(looks)
    (None, Loss(kind=<Look.PARKED: 'parked'>, reason='for sale', since=2))
    """
    run = _visits_since_fine(visits)
    gone = [each for each in run if each.health.is_gone]
    if len(gone) >= MIN_GONE_VISITS and _is_apart(gone[0], run[-1], CONFIRM_SECONDS):
        return DetectedLoss(gone[-1].health, gone[-1].reason, gone[0].visit)
    if len(run) >= MAX_WAIT_VISITS and _is_apart(
        run[0], run[-1], (MAX_WAIT_VISITS - 1) * _DAY - (_DAY - CONFIRM_SECONDS)
    ):
        return DetectedLoss(SiteHealth.UNRESPONSIVE, f"it has said for days to wait: {run[-1].reason}", run[0].visit)
    return None


def _visits_since_fine(seen: Sequence[VisitHealth]) -> Sequence[VisitHealth]:
    """Return the visits since the last fine look."""
    for place in range(len(seen) - 1, -1, -1):
        if seen[place].health in (SiteHealth.FINE, SiteHealth.UNSEEN):
            return seen[place + 1 :]
    return seen


def _is_apart(first: VisitHealth, last: VisitHealth, seconds: float) -> bool:
    """Return whether so much time lies between two visits; where the clock cannot be believed, their order must do."""
    if first.time is None or last.time is None:
        return True
    return last.time - first.time >= seconds


_MAX_VISITS = 60  # visits that are looked back at: a run that is longer was decided long ago


@dataclass(frozen=True, slots=True)
class SiteLoss:
    """A loss that was noticed.

    since: when the site was first seen to be gone, in seconds since 1970. noticed: when that was certain.
    over: when it was there again; None if it is still lost. is_told: whether whoever wants to know was told.
    """

    id: int
    kind: SiteHealth
    reason: str
    since: float
    noticed: float
    over: float | None
    is_notified: bool


class LossStore:
    """The tables about one site as a whole."""

    def __init__(self, file: VisitDatabase, site: int) -> None:
        self._data = file.connection
        self._site = site

    def known_pages(self) -> list[KnownPage]:
        """Return the pages that are known to have been good."""
        rows = self._data.execute(
            "SELECT uri, datetime, digest, text FROM page WHERE site = ? ORDER BY place", (self._site,)
        )
        return [
            KnownPage(decode_text(uri), datetime, digest, decode_text(text)) for uri, datetime, digest, text in rows
        ]

    def record_health(self, visit: SiteVisit, found: HealthCheck) -> None:
        """Keep how the site looked at a visit, and the pages that are known since then, all at once."""
        with transaction(self._data):
            self._data.execute(
                "UPDATE visit SET look = ?, reason = ? WHERE id = ?",
                (found.health, encode_text(found.reason), visit.id),
            )
            self._data.execute("DELETE FROM page WHERE site = ?", (self._site,))
            self._data.executemany(
                "INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (self._site, at, encode_text(each.uri), each.datetime, each.digest, encode_text(each.text))
                    for at, each in enumerate(found.pages)
                ],
            )

    def health_at(self, visit: SiteVisit) -> HealthCheck | None:
        """Return how the site looked at a visit; None if nobody has looked yet."""
        row = self._data.execute("SELECT look, reason FROM visit WHERE id = ?", (visit.id,)).fetchone()
        if row is None or row[0] is None:
            return None
        return HealthCheck(SiteHealth(row[0]), decode_text(row[1]) or "", tuple(self.known_pages()))

    def recent_health(self) -> list[VisitHealth]:
        """Return how the site looked at the last visits that are over, in their order."""
        rows = self._data.execute(
            "SELECT id, time, is_dated, look, reason FROM visit WHERE site = ? AND stage = ? AND look IS NOT NULL "
            "ORDER BY id DESC LIMIT ?",
            (self._site, VisitStage.DONE, _MAX_VISITS),
        ).fetchall()
        return [
            VisitHealth(number, time if is_dated else None, SiteHealth(look), decode_text(reason) or "")
            for number, time, is_dated, look, reason in reversed(rows)
        ]

    def last_loss(self) -> SiteLoss | None:
        """Return the last loss, whether or not it is over; None if there was none."""
        return next(iter(self._losses("DESC LIMIT 1")), None)

    def all_losses(self) -> list[SiteLoss]:
        """Return all losses, in their order."""
        return self._losses("ASC")

    def record_loss(self, visit: SiteVisit, loss: DetectedLoss) -> None:
        """Note that the site is lost."""
        self._data.execute(
            "INSERT INTO loss (site, visit, kind, reason, since) VALUES (?, ?, ?, ?, ?)",
            (self._site, visit.id, loss.kind, encode_text(loss.reason), loss.since),
        )

    def record_recovery(self, visit: SiteVisit) -> None:
        """Note that it is there again."""
        self._data.execute("UPDATE loss SET over = ? WHERE site = ? AND over IS NULL", (visit.id, self._site))

    def mark_notified(self, lost: SiteLoss) -> None:
        """Note that whoever wants to know was told."""
        self._data.execute("UPDATE loss SET is_told = 1 WHERE id = ?", (lost.id,))

    def _losses(self, order: str) -> list[SiteLoss]:
        rows = self._data.execute(
            "SELECT id, kind, reason, (SELECT time FROM visit WHERE id = since), (SELECT time FROM visit WHERE "
            "id = loss.visit), (SELECT time FROM visit WHERE id = over), is_told FROM loss WHERE site = ? "
            f"ORDER BY id {order}",
            (self._site,),
        )
        return [
            SiteLoss(number, SiteHealth(kind), decode_text(reason), since, noticed, over, bool(is_told))
            for number, kind, reason, since, noticed, over, is_told in rows
        ]


@dataclass(frozen=True, slots=True)
class LossHook:
    """A command. words: the program and its arguments; no shell is between, unless it is one."""

    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "LossHook":
        """Return the command in a text, whose words are parted and quoted as in a shell. Raises UsageError.

        >>> LossHook.parse("mail -s 'a site is lost' me@example.org").arguments
        ('mail', '-s', 'a site is lost', 'me@example.org')
        """
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--on-loss: not a command: {error}") from error
        if not words:
            raise UsageError("--on-loss: expected a command")
        return cls(tuple(words))

    def run(self, url: str, kind: str, reason: str, since: str) -> str | None:
        """Run it, and wait until it has ended; return what went wrong, None if nothing did.

        Behind its own words it gets two more: the address of the site, and the kind of loss. The same, with the reason
        and the date since which it is lost, is in UNLOST_SITE, UNLOST_LOSS, UNLOST_REASON and UNLOST_SINCE. What a site
        says is never part of a command line that a shell reads.
        """
        # A NUL cannot be in any of them, and would be an error here.
        told = {"SITE": url, "LOSS": kind, "REASON": reason, "SINCE": since}
        environment = os.environ | {f"UNLOST_{name}": _environment_text(value) for name, value in told.items()}
        try:
            done = subprocess.run(  # noqa: S603  the user's own command
                [*self.arguments, _environment_text(url), kind], env=environment, check=False, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            return f"{self.arguments[0]}: {error.strerror or error}"
        return None if done.returncode == 0 else f"{self.arguments[0]}: ended with {done.returncode}"


def _environment_text(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()
