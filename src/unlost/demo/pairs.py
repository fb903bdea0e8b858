"""Pages of the site, original and recovered: where each of them is in the two exports, and what became of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unlost.demo.site import LostSite
from unlost.measure.comparison import Comparison
from unlost.pages.link import LinkKind
from unlost.recover.export.contents import read_contents
from unlost.recover.export.placing.style import PathStyle
from unlost.recover.export.site_map import LinkTargetKind, LinkResolver


@dataclass(frozen=True, slots=True)
class PagePair:
    """One page. outcome: `identical`, `changed` or `missing`.

    original, recovered: its address in each export, relative to its top; None where it is not.
    """

    url: str
    title: str
    outcome: str
    original: str | None
    recovered: str | None


def pair_pages(site: LostSite, original: Path, recovered: Path, comparison: Comparison) -> tuple[PagePair, ...]:
    """Return all pages that the site had. original, recovered: the folders of their recoveries. Raises InputError."""
    outcomes: Mapping[str, str] = {each.uri: each.outcome.value for each in comparison.resources()}
    pages = [(resource.url, resource.title) for resource in site.resources if resource.is_page]
    with _link_resolver(original) as before, _link_resolver(recovered) as after:
        return tuple(
            PagePair(url, title, outcomes[url], _relative_url(before, url), _relative_url(after, url))
            for url, title in pages
        )


@contextmanager
def _link_resolver(recovery: Path) -> Iterator[LinkResolver]:
    with read_contents(recovery) as contents:
        yield LinkResolver(contents, PathStyle(browsable=True, windows=False))


def _relative_url(site: LinkResolver, url: str) -> str | None:
    found = site.resolve(url, LinkKind.PAGE)
    return found.relative_url if found.kind is LinkTargetKind.FILE else None
