"""The three archives of the demonstration: WARCs, CDXJ indexes and maps, served by fake archives or by pywb."""

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
_POLL_SECONDS = 0.05  # between requests until pywb responds
_STOP_TIMEOUT_SECONDS = 10.0
_MAX_START_ATTEMPTS = 3  # another process may take the free port before pywb binds it
_LOG_BYTES = 2_000  # end of pywb's log shown in an error message
# The shell kills pywb when its own stdin closes, which also happens if this process is killed; it exits with pywb.
_SUPERVISED_COMMAND = (
    'exec 3<&0; "$@" </dev/null 3<&- & child=$!; (read -r line <&3; kill $child) & reader=$!; '
    "wait $child; code=$?; kill $reader; exit $code"
)


def pywb_config(warcs: Path, index: Path) -> str:
    """Return the config.yaml of a pywb with one collection `t`, served from a folder of WARCs and their index."""
    collection = {"index_paths": str(index), "archive_paths": f"{warcs}/"}
    config = {"framed_replay": False, "enable_memento": True, "collections": {"t": collection}}
    return json.dumps(config)  # JSON is YAML


def pywb_environment() -> dict[str, str]:
    """Return the environment for pywb, without the PYTHON* variables: pywb has a virtual environment of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def pywb_registry_entry(
    port: int,
    id: str,  # noqa: A002  name of the registry field
    name: str,
    kind: ArchiveKind = ArchiveKind.PYWB,
    rows_per_page: int = 10_000,
) -> Archive:
    """Return the registry entry of the collection `t` of a pywb on this machine."""
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
    """A pywb process with one collection `t`. Use it as a context manager; `registry_entry` waits until it is ready.

    Args:
        program: Path of pywb's `wayback` command.
        warcs: Folder of the WARCs.
        index: CDXJ of the WARCs. pywb's files are written to the same folder.
    """

    def __init__(self, program: Path, warcs: Path, index: Path) -> None:
        self._program = program
        self._folder = index.parent / "pywb"
        self._config = pywb_config(warcs, index)
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the process without waiting for it."""
        self._folder.mkdir(exist_ok=True)
        (self._folder / "config.yaml").write_text(self._config)
        self._start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Terminate the process and its children."""
        self._stop()

    def registry_entry(self, id: str, name: str) -> Archive:  # noqa: A002  name of the registry field
        """Wait until pywb responds and return its registry entry.

        Raises:
            UsageError: pywb did not start.
        """
        for tries_left in reversed(range(_MAX_START_ATTEMPTS)):
            if self._is_ready():
                return pywb_registry_entry(self._port, id, name)
            self._stop()
            if tries_left:
                self._start()
        log_tail = self._log.read_text(errors="replace")[-_LOG_BYTES:].strip() or "it said nothing"
        raise UsageError(f"{self._program}: no pywb came up: name the program `wayback` of one by --pywb: {log_tail}")

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused_socket:
            self._port = int(unused_socket.getsockname()[1])
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
            time.sleep(_POLL_SECONDS)
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
    """Files of one archive.

    Attributes:
        warc: Path of its WARC.
        index: Path of its CDXJ index.
        map: Path of its MementoMap.
        captures: Number of captures.
        urls: Number of different URLs.
    """

    id: str
    name: str
    warc: Path
    index: Path
    map: Path
    captures: int
    urls: int


def write_holdings(site: LostSite, folder: Path) -> tuple[DemoHoldings, ...]:
    """Write the WARC and the index of each archive into a subfolder.

    Raises:
        OSError: A file could not be written.
        InputError: The WARC could not be read back.
    """
    return tuple(_write_archive(site, archive, folder / archive) for archive in site.archives)


def build_maps(holdings: tuple[DemoHoldings, ...]) -> None:
    """Build the map of each archive from its index.

    Raises:
        OSError: A map could not be written.
        InputError: An index could not be read.
    """
    for each in holdings:
        build_map(each.index, each.map, name=each.name)


@contextmanager
def run_fake_archives(site: LostSite) -> Iterator[Mapping[str, Archive]]:
    """Run `unlost.testing.FakeArchive` for each archive; yield the registry entries by id."""
    with ExitStack() as stack:
        entries = {}
        for archive, name in site.archives.items():
            captures: dict[str, list[Copy]] = {}
            for resource, capture in site.captures_in(archive):
                response = capture.response
                stored = Copy(capture.date, response.body, response.mime, response.status, response.location)
                captures.setdefault(resource.url, []).append(stored)
            fake = stack.enter_context(FakeArchive(captures, id=archive))
            entries[archive] = replace(fake.registry_entry(), name=name)
        yield entries


@contextmanager
def run_pywb_archives(program: Path, holdings: tuple[DemoHoldings, ...]) -> Iterator[Mapping[str, Archive]]:
    """Run pywb for each archive; yield the registry entries by id.

    Args:
        program: Path of pywb's `wayback` command.
        holdings: WARC and index of each archive.

    Raises:
        UsageError: pywb cannot be run or does not respond.
    """
    with ExitStack() as stack:
        servers = {each.id: stack.enter_context(PywbServer(program, each.warc.parent, each.index)) for each in holdings}
        yield {each.id: servers[each.id].registry_entry(each.id, each.name) for each in holdings}


def _write_archive(site: LostSite, archive: str, folder: Path) -> DemoHoldings:
    captures = [(resource.url, capture.date, capture.response) for resource, capture in site.captures_in(archive)]
    warc = write_site_warc(folder / "warc", captures, max(date for _, date, _ in captures))
    index = folder / "index.cdxj"
    count = write_index(warc, index)
    url_count = len({url for url, _, _ in captures})
    return DemoHoldings(archive, site.archives[archive], warc, index, folder / "map.ukvs", count, url_count)
