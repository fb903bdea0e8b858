"""The search page, which shows captures on a timeline by archive and year, and the page about archives."""

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

_MAX_SHOWN = 500  # captures per page
_MAX_TIMELINE_YEARS = 120  # columns of a timeline
_SHADES = 5  # of timeline cells, by the logarithm of the number of captures


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """Selects the captures that are listed below the timeline. Values are unvalidated; empty ones match all."""

    archive: str = ""
    year: str = ""

    def matches(self, archive: str, year: str) -> bool:
        """Return whether captures of an archive and year are selected."""
        return self.archive in ("", archive) and self.year in ("", year)


class SearchPage:
    """Renders the pages with automatic escaping.

    Args:
        archive_names: Names of archives by ID.
        base: Path prefix of the service's URLs.
        takes_orders: Whether recoveries can be ordered.
    """

    def __init__(self, archive_names: Mapping[str, str], base: str = "", *, takes_orders: bool = False) -> None:
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
        result: AggregateResult | None = None,
        problem: str = "",
        capture_filter: CaptureFilter = CaptureFilter(),  # noqa: B008
        strings: Translations | None = None,
        query: str = "",
    ) -> str:
        """Render the search page, with a result or an error message if given."""
        # In a thread, since rendering a page with many captures takes long.
        return await asyncio.to_thread(self._render_home, options, result, problem, capture_filter, strings, query)

    def _render_home(
        self,
        options: Mapping[str, str],
        result: AggregateResult | None,
        problem: str,
        capture_filter: CaptureFilter,
        strings: Translations | None,
        query: str,
    ) -> str:
        context: dict[str, object] = {"options": options, "found": result, "problem": problem, "choice": capture_filter}
        context |= layout_context("/", strings, query)
        if result is not None:
            counts = result.mementos.by_archive_and_year()
            context |= self._timeline(counts, options)
            selected = sum(
                count
                for name, row in counts.items()
                for year, count in row.items()
                if capture_filter.matches(name, year)
            )
            context["own"] = lambda memento: ServiceUrls(self._base).memento(memento.datetime, result.uri, "proxy")
            context |= {
                "listed": _filter_captures(result, capture_filter),
                "chosen": selected,
                "failures": result.failures,
            }
        return self._templates.get_template("home.html").render(context)

    def _timeline(self, counts: Mapping[str, Mapping[str, int]], options: Mapping[str, str]) -> dict[str, object]:
        """Return the timeline: years without gaps, and a row of counts for each archive."""
        years = _timeline_years(counts)
        maximum = max((count for row in counts.values() for count in row.values()), default=1)

        def cell(archive: str, year: str) -> tuple[int, int, str]:
            count = counts[archive].get(year, 0)
            shade = -(-count.bit_length() * _SHADES // maximum.bit_length()) if count else 0
            return count, shade, self.link(options, archive=archive, year=year)

        rows = [(archive, sum(counts[archive].values()), [cell(archive, year) for year in years]) for archive in counts]
        return {"years": years, "rows": rows, "link": lambda **filters: self.link(options, **filters)}

    def link(self, options: Mapping[str, str], **filters: str) -> str:
        """Return the URL of this page with another capture filter."""
        retained = {name: value for name, value in options.items() if value and name not in ("archive", "year")}
        return f"{self._base}/?{urlencode({**retained, **filters})}#copies"

    def render_about(
        self, description: Mapping[str, object], strings: Translations | None = None, query: str = ""
    ) -> str:
        """Render the page about archives from the result of `describe_archives`."""
        return self._templates.get_template("about.html").render(
            description=description, **layout_context("/about", strings, query)
        )


def _timeline_years(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the years of a timeline, without gaps unless the range is too long: some archives list invalid dates."""
    totals: Counter[str] = Counter()
    for row in counts.values():
        totals.update(row)
    if not totals:
        return []
    first, last = int(min(totals)), int(max(totals))
    if last - first < _MAX_TIMELINE_YEARS:
        return [f"{year:04d}" for year in range(first, last + 1)]
    return sorted(year for year, _ in totals.most_common(_MAX_TIMELINE_YEARS))


def _filter_captures(result: AggregateResult, capture_filter: CaptureFilter) -> list[MementoTuple]:
    """Return the first selected captures, at most `_MAX_SHOWN`."""
    captures = result.mementos
    year, archive = capture_filter.year, capture_filter.archive
    if year:
        try:
            captures = captures.between(f"{year}0101000000", f"{year}1231235959")
        except DateError:
            return []  # not a year
    return list(islice((each for each in captures if archive in ("", each.archive)), _MAX_SHOWN))


def _linkable_url(url: str) -> str:
    """Return a URL if it is a web URL, else an empty string."""
    return url if is_web_url(url) else ""


def _format_moment(datetime: str) -> str:
    return to_iso(datetime).replace("T", " ").removesuffix("Z")
