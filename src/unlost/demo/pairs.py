"""Pages of the site, original and recovered: where each of them is in the two exports, and what became of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unlost.demo.site import LostSite
from unlost.measure.comparison import Comparison
from unlost.pages.link import Use
from unlost.recover.export.contents import read_contents
from unlost.recover.export.placing.style import Style
from unlost.recover.export.site_map import Kind, SiteMap


@dataclass(frozen=True, slots=True)
class Pair:
    """One page. outcome: `identical`, `changed` or `missing`.

    original, recovered: its address in each export, relative to its top; None where it is not.
    """

    url: str
    title: str
    outcome: str
    original: str | None
    recovered: str | None


def pairs_of(site: LostSite, original: Path, recovered: Path, comparison: Comparison) -> tuple[Pair, ...]:
    """Return all pages that the site had. original, recovered: the folders of their recoveries. Raises InputError."""
    outcomes: Mapping[str, str] = {each.uri: each.outcome.value for each in comparison.resources()}
    pages = [(resource.url, resource.title) for resource in site.resources if resource.is_page]
    with _placed(original) as before, _placed(recovered) as after:
        return tuple(
            Pair(url, title, outcomes[url], _address(before, url), _address(after, url)) for url, title in pages
        )


@contextmanager
def _placed(recovery: Path) -> Iterator[SiteMap]:
    with read_contents(recovery) as contents:
        yield SiteMap(contents, Style(browsable=True, windows=False))


def _address(site: SiteMap, url: str) -> str | None:
    found = site.destination(url, Use.PAGE)
    return found.address if found.kind is Kind.FILE else None
