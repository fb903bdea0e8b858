"""Simulated archives that crawl a live site weekly, each with its own profile, and serve it by pywb."""

import asyncio
import random
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.archives.archive_files import page, write
from tests.cli.run import unlost
from tests.external.pywb import Pywb, serve_index
from tests.virtual_clock import VirtualClock
from unlost import dates
from unlost.crawl import MAX_RESOURCE_BYTES, CrawlConfig, crawl
from unlost.vault import SiteCrawl

FIRST = 1_767_225_600.0  # 2026-01-01, a Thursday
WEEK = 7 * 86_400.0


def week_start(week: int) -> float:
    """Return the start of a week in seconds since 1970."""
    return FIRST + week * WEEK


@dataclass(frozen=True, slots=True)
class ArchiveProfile:
    """Behaviour of an archive.

    Attributes:
        share: Fraction of pages crawled per week.
        is_deep: Whether it stores all captures; otherwise only the latest one of each page.
        most: Maximum bytes stored of a page.
        minifies: Whether it removes comments and white space.
        forgets: Fraction of pages that it loses per week.
    """

    name: str
    share: float
    is_deep: bool = False
    most: int = MAX_RESOURCE_BYTES
    minifies: bool = False
    forgets: float = 0.0


@dataclass
class SimulatedArchive:
    """An archive with a profile. `truncated` is the number of truncated pages."""

    profile: ArchiveProfile
    folder: Path
    rng: random.Random
    captures: dict[str, tuple[str, str, bytes]] = field(default_factory=dict)
    truncated: int = 0

    def __post_init__(self) -> None:
        """Create an empty archive."""
        self.warcs, self.index = self.folder / "warcs", self.folder / "index.cdxj"
        self.warcs.mkdir(parents=True)
        self.index.touch()

    def visit(self, site: str, paths: list[str], week: int) -> None:
        """Crawl a site in a week, and store captures according to the profile.

        Args:
            paths: Pages that may be skipped.
        """
        skipped = "|".join(re.escape(path) for path in paths if self.rng.random() >= self.profile.share)
        plan = CrawlConfig(
            (f"{site}/",), exclude=(f"({skipped})$",), sitemaps=False, delay=0.0, bytes_each=self.profile.most
        )
        clock, folder = VirtualClock(week_start(week)), self.folder / f"crawl-{week}"
        asyncio.run(crawl(plan, folder, clock, contact="archive@example.org"))
        if self.profile.is_deep:
            for file in (folder / "warc").glob("*.warc.gz"):
                shutil.copy(file, self.warcs / f"{week:02d}-{file.name}")
        else:
            self._replace_captures(folder, clock)
        self._update_index(sorted(self.warcs.glob("*.warc.gz")))

    def _replace_captures(self, folder: Path, clock: VirtualClock) -> None:
        for each, body in SiteCrawl(folder, clock, 0.0).iter_bodies():
            self.truncated += each.truncated is not None
            mime = each.mime or ""
            done = minify_html(body) if self.profile.minifies and mime == "text/html" else body
            self.captures[each.uri] = (each.seen or "", mime, done)
        for uri in [
            uri for uri in self.captures if urlsplit(uri).path != "/" and self.rng.random() < self.profile.forgets
        ]:
            del self.captures[uri]
        records = (
            page(uri, dates.to_iso(seen), body, [("Content-Type", mime), ("Content-Length", str(len(body)))])
            for uri, (seen, mime, body) in sorted(self.captures.items())
        )
        write(self.warcs / "last.warc.gz", *records)

    def _update_index(self, files: list[Path]) -> None:
        """Update the index that pywb reads for each request."""
        new_index = self.folder / "index.new"
        done = unlost("index", "build", *map(str, files), "-o", str(new_index))
        assert done.returncode == 0, done.stderr.decode()
        new_index.replace(self.index)


def minify_html(body: bytes) -> bytes:
    """Return a page without comments and unnecessary white space."""
    return re.sub(rb"\s+", b" ", re.sub(rb"<!--.*?-->", b"", body, flags=re.DOTALL))


def serve_archives(archives: list[SimulatedArchive], servers: ExitStack) -> list[Pywb]:
    """Serve each archive by a pywb process."""
    return [servers.enter_context(serve_index(each.index, each.warcs, each.folder)) for each in archives]


def registry_toml(archives: list[SimulatedArchive], servers: list[Pywb]) -> str:
    """Return a registry of these archives."""
    return "\n".join(
        registry_entry(archive.profile.name, server) for archive, server in zip(archives, servers, strict=True)
    )


def registry_entry(name: str, server: Pywb) -> str:
    """Return the registry entry of an archive without effective rate limits."""
    base = f"http://127.0.0.1:{server.port}/t/"
    return (
        f'[[archive]]\nid = "{name}"\nname = "{name}"\nkind = "pywb"\n'
        f'timemap = "{base}timemap/link/"\ntimegate = "{base}"\ncdx = "{base}cdx"\n'
        f'replay = "{base}{{datetime}}id_/{{uri}}"\n'
        'limits = [{ requests = 100000, seconds = 1, works = ["index", "replay"], source = "a test" }]\n'
        '[archive.lister]\nmatches = ["exact", "prefix", "host", "domain"]\n'
        'rows_per_page = { value = 100000, source = "a test" }\n'
    )
