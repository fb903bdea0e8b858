"""What is known of the life of a site itself: pages that were good, how it looked, and when it was lost."""

# ruff: noqa: S608  what is put into statements is our own

from dataclasses import dataclass

from unlost.measure.visits.file import VisitDatabase
from unlost.measure.visits.present import VisitStage, SiteVisit
from unlost.measure.watching.looking import KnownPage, SiteHealth, HealthCheck
from unlost.measure.watching.loss import DetectedLoss, VisitHealth
from unlost.state_file import encode_text, decode_text
from unlost.transactions import transaction

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
