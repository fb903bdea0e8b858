"""The search page: captures of a page on a timeline by archive and year; and the page about archives."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode

import jinja2

from unlost.aggregate.models import AggregateResult
from unlost.aggregate.request import is_web_url
from unlost.aggregate.urls import ServiceUrls
from unlost.dates import to_iso
from unlost.errors import DateError
from unlost.memento.timemap import MementoTuple
from unlost.report.i18n import Translations
from unlost.webui.templating import layout_context, load_template

_MAX_SHOWN = 500  # copies in one page; the rest is one click away
_MAX_TIMELINE_YEARS = 120  # in a time line
_SHADES = 5


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """Which of the copies are listed below the time line. Texts are as they were given, and may be empty."""

    archive: str = ""
    year: str = ""

    def matches(self, archive: str, year: str) -> bool:
        """Return whether copies of an archive and a year are among them."""
        return self.archive in ("", archive) and self.year in ("", year)


class SearchPage:
    """Renders the pages. Everything that is put into them is escaped."""

    def __init__(self, archive_names: Mapping[str, str], base: str = "", *, takes_orders: bool = False) -> None:
        """names: of archives, by id. base: path prefix of our URLs. takes_orders: whether recoveries can be ordered."""
        self._names = archive_names
        self._base = base
        self._templates = jinja2.Environment(
            loader=jinja2.FunctionLoader(load_template), autoescape=True, undefined=jinja2.StrictUndefined
        )
        self._templates.globals["takes_orders"] = takes_orders
        self._templates.globals["base"] = base
        self._templates.globals["name_of"] = lambda archive: archive_names.get(archive, archive)
        self._templates.filters["web"] = _linkable_url
        self._templates.filters["moment"] = _format_moment

    async def render_home(
        self,
        options: Mapping[str, str],
        found: AggregateResult | None = None,
        problem: str = "",
        choice: CaptureFilter = CaptureFilter(),  # noqa: B008
        strings: Translations | None = None,
        query: str = "",
    ) -> str:
        """Return the page with the search box, and below it what was found, or what is wrong."""
        # Of a page with very many copies it takes long, and others want to be answered meanwhile.
        return await asyncio.to_thread(self._render_home, options, found, problem, choice, strings, query)

    def _render_home(
        self,
        options: Mapping[str, str],
        found: AggregateResult | None,
        problem: str,
        choice: CaptureFilter,
        strings: Translations | None,
        query: str,
    ) -> str:
        context: dict[str, object] = {"options": options, "found": found, "problem": problem, "choice": choice}
        context |= layout_context("/", strings, query)
        if found is not None:
            counts = found.mementos.by_archive_and_year()
            context |= self._timeline(counts, options)
            chosen = sum(n for name, row in counts.items() for year, n in row.items() if choice.matches(name, year))
            context["own"] = lambda memento: ServiceUrls(self._base).memento(memento.datetime, found.uri, "proxy")
            context |= {"listed": _filter_captures(found, choice), "chosen": chosen, "failures": found.failures}
        return self._templates.get_template("home.html").render(context)

    def _timeline(self, counts: Mapping[str, Mapping[str, int]], options: Mapping[str, str]) -> dict[str, object]:
        """Return the time line: years without a gap, and a row of counts for each archive."""
        years = _timeline_years(counts)
        most = max((count for row in counts.values() for count in row.values()), default=1)

        def cell(archive: str, year: str) -> tuple[int, int, str]:
            count = counts[archive].get(year, 0)
            shade = -(-count.bit_length() * _SHADES // most.bit_length()) if count else 0
            return count, shade, self.link(options, archive=archive, year=year)

        rows = [(archive, sum(counts[archive].values()), [cell(archive, year) for year in years]) for archive in counts]
        return {"years": years, "rows": rows, "link": lambda **more: self.link(options, **more)}

    def link(self, options: Mapping[str, str], **more: str) -> str:
        """Return the address of this page with other options."""
        kept = {name: value for name, value in options.items() if value and name not in ("archive", "year")}
        return f"{self._base}/?{urlencode({**kept, **more})}#copies"

    def render_about(
        self, description: Mapping[str, object], strings: Translations | None = None, query: str = ""
    ) -> str:
        """Return the page about archives. told: as `service.about` tells it."""
        return self._templates.get_template("about.html").render(
            told=description, **layout_context("/about", strings, query)
        )


def _timeline_years(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the years of a time line: without a gap, but where archives list dates of no web that there ever was."""
    totals: Counter[str] = Counter()
    for row in counts.values():
        totals.update(row)
    if not totals:
        return []
    first, last = int(min(totals)), int(max(totals))
    if last - first < _MAX_TIMELINE_YEARS:
        return [f"{year:04d}" for year in range(first, last + 1)]
    return sorted(year for year, _ in totals.most_common(_MAX_TIMELINE_YEARS))


def _filter_captures(found: AggregateResult, choice: CaptureFilter) -> list[MementoTuple]:
    """Return the first of the copies that are chosen: no more than are shown, since there may be very many."""
    copies = found.mementos
    if choice.year:
        try:
            copies = copies.between(f"{choice.year}0101000000", f"{choice.year}1231235959")
        except DateError:
            return []  # no year
    return list(islice((each for each in copies if choice.archive in ("", each.archive)), _MAX_SHOWN))


def _linkable_url(address: str) -> str:
    """Return an address to link to; nothing if it is not one of the web, or that of a record in a file."""
    return address if is_web_url(address) else ""


def _format_moment(datetime: str) -> str:
    return to_iso(datetime).replace("T", " ").removesuffix("Z")
