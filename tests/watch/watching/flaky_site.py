"""Simulated sites: outages, 503, maintenance, redesigns; some are lost.

`Habits` has the probabilities. Everything follows from a seed.
"""

# ruff: noqa: S311  nobody gains by guessing what a made-up site does

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random

from unlost import dates
from unlost.watch import FetchedPage

DAY = 86_400.0
BEGIN = 1_700_006_400.0

_SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "ne",
    "pa",
    "ri",
    "so",
    "tu",
    "va",
    "wi",
    "xe",
)


@dataclass(frozen=True)
class Habits:
    """Daily probabilities of events, and their durations.

    Attributes:
        outage: No response for half an hour to six hours.
        long_outage: No response for 6 to 60 hours.
        busy: 503 for half an hour to twelve hours.
        maintenance: A maintenance page with status 200 for one to 20 hours.
        broken: A database error page with status 200, for as long.
        redesign: All URLs but the home page are new, and all pages rewritten; the name stays.
        event: The home page redirects to another domain for one to ten days.
        request: Share of requests that fail, and of those with status 500.
    """

    outage: float = 0.02
    long_outage: float = 0.0005
    busy: float = 0.01
    maintenance: float = 0.005
    broken: float = 0.002
    redesign: float = 0.004
    event: float = 0.001
    request: float = 0.01


@dataclass(frozen=True)
class Window:
    """A period with a behaviour."""

    begin: float
    end: float
    what: str


@dataclass
class FlakySite:
    """A site whose life is drawn when it is created; requests do not change it."""

    seed: int
    days: int
    habits: Habits = field(default_factory=Habits)
    lost: str | None = None
    lost_day: int | None = None

    def __post_init__(self) -> None:
        """Draw its life."""
        draw = Random(self.seed)
        self.name = _word(draw, 4)
        self.home = f"http://{self.name}.example/"
        self.topic = [_word(draw, 3) for _ in range(60)]
        self.pages = draw.randint(2, 30)
        self.is_changing = draw.random() < 0.3
        self.windows: list[Window] = []
        self.redesigns: list[float] = []
        habits = self.habits
        for day in range(self.days):
            begin = BEGIN + day * DAY
            for what, rate, hours in (
                ("down", habits.outage, (0.5, 6)),
                ("down", habits.long_outage, (6, 60)),
                ("busy", habits.busy, (0.5, 12)),
                ("maintenance", habits.maintenance, (1, 20)),
                ("broken", habits.broken, (1, 20)),
                ("event", habits.event, (24, 240)),
            ):
                if draw.random() < rate:
                    at = begin + draw.random() * DAY
                    self.windows.append(Window(at, at + draw.uniform(*hours) * 3600, what))
            if draw.random() < habits.redesign:
                self.redesigns.append(begin + draw.random() * DAY)
        self.now = BEGIN
        self._noise = Random(self.seed + 1)

    async def fetch(self, uri: str) -> FetchedPage:  # noqa: PLR0911  a way out for each thing that may be going on
        """Respond as the site does now."""
        if self._noise.random() < self.habits.request:
            if self._noise.random() < 0.5:
                return self._none(uri, "timed out")
            return self._page(uri, 500, "Internal Server Error", "Something is wrong with the server.")
        if self.lost is not None and self.lost_day is not None and self.now >= BEGIN + self.lost_day * DAY:
            return _LOST[self.lost](self, uri)
        going_on = {window.what for window in self.windows if window.begin <= self.now < window.end}
        if "down" in going_on:
            return self._none(uri, "connection refused")
        if "busy" in going_on:
            return self._page(uri, 503, "Service Unavailable", "")
        if "maintenance" in going_on:
            return self._page(uri, 200, "Down for maintenance", "We are working on the site and will be back soon.")
        if "broken" in going_on:
            return self._page(uri, 200, "Database Error", "Error establishing a database connection")
        if "event" in going_on and uri == self.home:
            return self._page(uri, 200, "The great summer event", "Buy tickets now.", final="http://event.example.org/")
        return self._own(uri)

    def _own(self, uri: str) -> FetchedPage:
        design = sum(time <= self.now for time in self.redesigns)
        addresses = [f"{self.home}{f'v{design}/' if design else ''}page{number}.html" for number in range(self.pages)]
        if uri == self.home:
            links = "".join(f'<li><a href="{each}">{_title(self, each)}</a>' for each in addresses)
            return self._page(
                uri, 200, f"{self.name} home", f"<p>Welcome to {self.name}. {self._prose(design, 0)}<ul>{links}</ul>"
            )
        if uri in addresses:
            number = addresses.index(uri)
            return self._page(uri, 200, f"{_title(self, uri)} - {self.name}", f"<p>{self._prose(design, number + 1)}")
        return self._page(uri, 404, "Not Found", "There is no such page.")

    def _prose(self, design: int, page: int) -> str:
        """Return the text of a page, parts of which change daily on some sites."""
        draw = Random(f"{self.seed} {design} {page}")
        words = draw.choices(self.topic, k=120)
        if self.is_changing:
            today = Random(f"{self.seed} {page} {int(self.now // DAY)}")
            words[:15] = today.choices(self.topic, k=15)
        sentences = [" ".join(words[at : at + 10]) + "." for at in range(0, len(words), 10)]
        return f"The {self.name} of {self.topic[page % 60]}. " + " ".join(sentences)

    def _page(self, uri: str, status: int, title: str, text: str, final: str = "") -> FetchedPage:
        body = f"<!doctype html><title>{title}</title><h1>{title}</h1>{text}".encode()
        digest = f"sha256:{sha256(body).hexdigest()}"
        return FetchedPage(uri, self._moment, final or uri, status, "text/html", "utf-8", body, digest)

    def _none(self, uri: str, why: str) -> FetchedPage:
        return FetchedPage(uri, self._moment, error=why)

    @property
    def _moment(self) -> str:
        return dates.from_epoch(str(int(self.now)))


def _title(site: FlakySite, uri: str) -> str:
    return site.topic[sum(uri.encode()) % len(site.topic)].capitalize()


def _word(draw: Random, syllables: int) -> str:
    return "".join(draw.choice(_SYLLABLES) for _ in range(syllables))


def _missing(site: FlakySite, uri: str) -> FetchedPage:
    return site._page(uri, 404, "Not Found", "The requested URL was not found on this server.")


def _notice(site: FlakySite, uri: str) -> FetchedPage:
    if uri == site.home:
        text = "<p>This digital collection has been taken off the web. We thank everybody who used it."
        return site._page(uri, 200, "Goodbye", text)
    return _missing(site, uri)


def _parked(site: FlakySite, uri: str) -> FetchedPage:
    host = f"{site.name}.example"
    return site._page(uri, 200, host, f"<p>{host} is for sale! Buy this domain.<p>Related searches<p>Make an offer")


def _hijacked(site: FlakySite, uri: str) -> FetchedPage:
    text = (
        "<p>Play the best online casino games with a huge welcome bonus. Slots, roulette, blackjack and poker with "
        "free spins, real money jackpots every day. Casino betting on sports, live dealers, baccarat, fast payouts. "
        "Register for the casino bonus now and win the jackpot on our new slots. Gambling has never been easier: "
        "poker rooms, betting odds, slot machines, free spins."
    )
    return site._page(uri, 200, "Best online casino bonus 2026", text)


def _moved(site: FlakySite, uri: str) -> FetchedPage:
    final = uri.replace(f"{site.name}.example", "successor.example.org")
    return site._page(
        uri, 200, "Successor", f"<p>All about {site.topic[0]} and {site.topic[1]} in our new house.", final
    )


_LOST: dict[str, Callable[[FlakySite, str], FetchedPage]] = {
    "unresponsive": lambda site, uri: site._none(uri, "no such host"),
    "missing-content": _missing,
    "notice": _notice,
    "parked": _parked,
    "hijacked": _hijacked,
    "moved": _moved,
    "error": lambda site, uri: site._page(uri, 502, "Bad Gateway", ""),
}
KINDS = tuple(_LOST)
