"""The three archives of the demonstration: WARCs, indexes and maps, served by fake archives or by pywb."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.api.maps import build_map
from unlost.demo.site import LostSite, write_index, write_site_warc
from unlost.errors import UsageError
from unlost.registry.models import Archive, ArchiveKind, PrefixListing, SourcedNumber
from unlost.testing import Copy, FakeArchive

_START_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.05
_STOP_TIMEOUT_SECONDS = 10.0
_MAX_START_ATTEMPTS = 3  # ports that somebody else may take between looking and listening
_LOG_BYTES = 2_000  # of what it said, in a message
# The shell ends it when the shell's own input ends: that is, when we end it, or are killed; and ends when it does.
_SUPERVISED_COMMAND = (
    'exec 3<&0; "$@" </dev/null 3<&- & child=$!; (read -r line <&3; kill $child) & reader=$!; '
    "wait $child; code=$?; kill $reader; exit $code"
)


def pywb_config(warcs: Path, index: Path) -> str:
    """Return the config.yaml of a pywb with one collection, `t`: a folder of WARCs, and their index."""
    collection = {"index_paths": str(index), "archive_paths": f"{warcs}/"}
    config = {"framed_replay": False, "enable_memento": True, "collections": {"t": collection}}
    return json.dumps(config)  # JSON is YAML


def pywb_environment() -> dict[str, str]:
    """Return the variables to run it with: what is set for this Python is not meant for that one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def pywb_registry_entry(
    port: int,
    id: str,  # noqa: A002  as registries call it
    name: str,
    kind: ArchiveKind = ArchiveKind.PYWB,
    rows_per_page: int = 10_000,
) -> Archive:
    """Return what a registry says of the collection `t` of a pywb on this machine."""
    base = f"http://127.0.0.1:{port}/t/"
    return Archive(
        id, name, kind,
        timemap=f"{base}timemap/link/",
        timegate=base,
        cdx=f"{base}cdx",
        replay=f"{base}{{datetime}}id_/{{uri}}",
        lister=PrefixListing(("exact", "prefix", "host", "domain"), SourcedNumber(rows_per_page, "what whoever "
                                                                                                 "runs it says")),
    )  # fmt: skip


class PywbServer:
    """A running pywb with one collection, `t`. Use it as a context manager; it is ready when `entry` returns.

    program: its `wayback`. warcs: the folder of the WARCs. index: their CDXJ; pywb's own files are written beside it.
    """

    def __init__(self, program: Path, warcs: Path, index: Path) -> None:
        self._program = program
        self._folder = index.parent / "pywb"
        self._config = pywb_config(warcs, index)
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it, and do not wait for it."""
        self._folder.mkdir(exist_ok=True)
        (self._folder / "config.yaml").write_text(self._config)
        self._start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """End it, and whatever it started."""
        self._stop()

    def registry_entry(self, id: str, name: str) -> Archive:  # noqa: A002  as registries call it
        """Wait until it answers, and return what a registry says of it. Raises UsageError if it never does."""
        for tries_left in reversed(range(_MAX_START_ATTEMPTS)):
            if self._is_ready():
                return pywb_registry_entry(self._port, id, name)
            self._stop()
            if tries_left:
                self._start()
        said = self._log.read_text(errors="replace")[-_LOG_BYTES:].strip() or "it said nothing"
        raise UsageError(f"{self._program}: no pywb came up: name the program `wayback` of one by --pywb: {said}")

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = int(free.getsockname()[1])
        command = [str(self._program), "-b", "127.0.0.1", "-p", str(self._port), "-t", "1", "-d", str(self._folder)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  the program that the user named
                ["/bin/sh", "-c", _SUPERVISED_COMMAND, "sh", *command],
                cwd=self._folder, env=pywb_environment(), start_new_session=True,
                stdin=subprocess.PIPE, stdout=log, stderr=log,
            )  # fmt: skip

    def _is_ready(self) -> bool:
        end = time.monotonic() + _START_TIMEOUT_SECONDS
        while self._process is not None and self._process.poll() is None and time.monotonic() < end:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_START_TIMEOUT_SECONDS)
            with suppress(OSError, http.client.HTTPException), closing(connection):
                connection.request("GET", "/t/cdx?url=none.example")
                if connection.getresponse().status == http.client.OK:
                    return True
            time.sleep(_POLL_SECONDS)  # between two looks
        return False

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


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
