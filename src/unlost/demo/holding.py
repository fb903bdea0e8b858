"""Three archives on this machine, each with a part of the lost site, its index and its map."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from unlost.api.maps import build_map
from unlost.archives.archive import Archive
from unlost.demo.pywb import PywbServer
from unlost.demo.site import LostSite
from unlost.demo.warcs import write_index, write_site_warc
from unlost.testing import Copy, FakeArchive


@dataclass(frozen=True, slots=True)
class DemoHoldings:
    """What one archive has, in files.

    warc, index, map: their paths. captures: how many copies. addresses: of how many addresses.
    """

    id: str
    name: str
    warc: Path
    index: Path
    map: Path
    captures: int
    urls: int


def write_holdings(site: LostSite, folder: Path) -> tuple[DemoHoldings, ...]:
    """Write the WARC and the index of each archive into a folder of its own. Raises OSError, InputError."""
    return tuple(_write_archive(site, archive, folder / archive) for archive in site.archives)


def build_maps(holdings: tuple[DemoHoldings, ...]) -> None:
    """Write the map of each archive, from its index. Raises OSError, InputError."""
    for each in holdings:
        build_map(each.index, each.map, name=each.name)


@contextmanager
def run_fake_archives(site: LostSite) -> Iterator[Mapping[str, Archive]]:
    """Run archives of the package itself, in threads; give their entries of a registry, by id."""
    with ExitStack() as stack:
        found = {}
        for archive, name in site.archives.items():
            held: dict[str, list[Copy]] = {}
            for resource, copy in site.captures_in(archive):
                answer = copy.response
                stored = Copy(copy.date, answer.body, answer.mime, answer.status, answer.location)
                held.setdefault(resource.url, []).append(stored)
            running = stack.enter_context(FakeArchive(held, id=archive))
            found[archive] = replace(running.registry_entry(), name=name)
        yield found


@contextmanager
def run_pywb_archives(program: Path, holdings: tuple[DemoHoldings, ...]) -> Iterator[Mapping[str, Archive]]:
    """Run a pywb for each archive, with its WARC and index; give their entries of a registry, by id.

    program: the `wayback` of a pywb. Raises UsageError if it cannot be run, or does not answer.
    """
    with ExitStack() as stack:
        running = {each.id: stack.enter_context(PywbServer(program, each.warc.parent, each.index)) for each in holdings}
        yield {each.id: running[each.id].registry_entry(each.id, each.name) for each in holdings}


def _write_archive(site: LostSite, archive: str, folder: Path) -> DemoHoldings:
    copies = [(resource.url, copy.date, copy.response) for resource, copy in site.captures_in(archive)]
    warc = write_site_warc(folder / "warc", copies, max(date for _, date, _ in copies))
    index = folder / "index.cdxj"
    count = write_index(warc, index)
    addresses = len({url for url, _, _ in copies})
    return DemoHoldings(archive, site.archives[archive], warc, index, folder / "map.ukvs", count, addresses)
