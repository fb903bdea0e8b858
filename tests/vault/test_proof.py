"""The dissertation's experiment: a digital library over 24 weeks, three archives, and at the end no server."""

import gzip
import importlib.util
import random
import re
import shutil
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from tests.archives.archive_files import page, write
from tests.cli.run import unlost
from tests.neighbours.pywb import serving_warcs
from tests.vault.library import change, make_library
from tests.vault.made import listing
from unlost.vault.carriers import Carrier
from unlost.vault.choosing import choose
from unlost.vault.gathering import Gathering, gather
from unlost.vault.making import Wish, advance, make
from unlost.vault.middleware.wsgi import VaultMiddleware
from unlost.vault.planning import Page
from unlost.vault.recovering import is_complete, recover
from unlost.vault.sealing import Keys, Seal
from unlost.vault.staging import held_of
from unlost.vault.state import Settings, Vault, open_vault
from unlost.vault.watching import indices_of

# warcio leaves temporary files to be collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SITE = "http://library.example"
LIMIT = 24 << 10
ITEMS = 125
UNLINKED, MOVED, ALL_MOVED, GONE, LAST = 10, 13, 16, 19, 24
"""The weeks of the dissertation's table of events."""


def load(root: Path) -> Any:  # noqa: ANN401  a WSGI application
    """Return the application in a server's folder."""
    spec = importlib.util.spec_from_file_location("library_app", root / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.application


def asked(app: Any, path: str) -> tuple[str, dict[str, str], bytes]:  # noqa: ANN401
    """Return what an application answers."""
    environ: dict[str, Any] = {"PATH_INFO": path}
    setup_testing_defaults(environ)
    told: list[Any] = []

    def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> object:
        del exc_info
        told[:] = [status, dict(headers)]
        return None

    content = b"".join(app(environ, start))
    return told[0], told[1], content


class Keeper:
    """An archive that keeps the last copy of each page, sees some pages a week, and does things to them."""

    def __init__(self, name: str, share: float, rng: random.Random) -> None:
        self.name, self._share, self._rng = name, share, rng
        self.kept: dict[str, tuple[int, str, bytes]] = {}

    def visit(self, app: Any, week: int) -> None:  # noqa: ANN401
        """Follow the links of the site from its root, and keep what is seen of it."""
        waiting, seen = ["/"], {"/"}
        for path in waiting:
            status, headers, body = asked(app, path)
            if status != "200 OK":
                continue
            kind = headers["Content-Type"]
            for link in re.findall(rb"href=[\"'](/[^\"']*)", body) if "html" in kind else ():
                if link.decode() not in seen:
                    seen.add(link.decode())
                    waiting.append(link.decode())
            if self._rng.random() < self._share:
                self.kept[path] = (week, kind, self._done_to(body) if "html" in kind else body)
        # Caches forget a page now and then.
        for path in [path for path in self.kept if self._rng.random() < 0.03]:
            del self.kept[path]

    def _done_to(self, body: bytes) -> bytes:
        if self.name == "cutting":
            return body[:LIMIT]
        if self.name == "minifying":
            return re.sub(rb"\s+", b" ", re.sub(rb"<!--.*?-->", b"", body, flags=re.DOTALL))
        return body

    def write(self, folder: Path) -> Path:
        """Write what is kept as a WARC."""
        return write(folder / f"{self.name}.warc.gz", *(self._record(path) for path in sorted(self.kept)))

    def _record(self, path: str) -> Any:  # noqa: ANN401  what `write` takes
        week, kind, body = self.kept[path]
        headers = [("Content-Type", kind)]
        if self.name == "packing":
            headers.append(("Content-Encoding", "gzip"))
            body = gzip.compress(body, mtime=0)
        headers.append(("Content-Length", str(len(body))))
        return page(f"{SITE}{path}", f"2026-01-{week:02d}T00:00:00Z", body, headers)


class Proof:
    """The library, its vault, and the archives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = make_library(folder, ITEMS)
        self.vault = folder / "vault"
        rng = random.Random(11)  # noqa: S311  not for secrets
        self.archives = [Keeper("packing", 0.5, rng), Keeper("cutting", 0.4, rng), Keeper("minifying", 0.35, rng)]
        self.snapshots: list[dict[str, Any]] = []

    def pack(self, segments: str, week: int) -> None:
        """Pack the server as it is now, and remember it."""
        app = load(self.root)
        paths = ["/", *(f"/item/{number}" for number in range(ITEMS))]
        pages = [Page(path, len(asked(app, path)[2]), 0 if path == "/" else 1) for path in paths]
        settings = Settings(Carrier.TEMPLATE, LIMIT, segments=segments)
        before = open_vault(self.vault) if self.vault.exists() else Vault(self.vault)
        self.vault.mkdir(exist_ok=True)
        wish = Wish(choose([self.root]).files, pages, settings, Seal(), 0.5)
        make(before, wish, f"202601{week:02d}000000")
        self.snapshots.append(listing(self.root))

    def gathered(self, week: int) -> Gathering:
        """Return the blocks that the archives hold."""
        found = Gathering()
        folder = self.folder / f"week-{week}"
        for archive in self.archives:
            gather(archive.write(folder), found)
        return found

    def go_on(self, found: Gathering, week: int) -> None:
        """End an update if archives hold the new version."""
        state = open_vault(self.vault)
        if len(state.generations) == 2 and all(each.is_enough for each in held_of(state.newest, indices_of(found))):
            advance(state, f"202601{week:02d}000000")


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> tuple[Proof, dict[int, int | None]]:
    """Return the experiment after its last week, and which snapshot came back in each week; None for none."""
    it = Proof(tmp_path_factory.mktemp("proof"))
    it.pack("directory", 1)
    back: dict[int, int | None] = {}
    for week in range(1, LAST + 1):
        if week == UNLINKED:
            change(it.root, "UPDATE items SET listed = 1 WHERE id = 77")
            it.pack("directory", week)
        if week == MOVED:
            (it.root / "tools" / "backup.sh").write_text("#!/bin/sh\nexec sqlite3 data/library.db .backup\n")
            it.pack("directory", week)
        if week == ALL_MOVED:
            change(it.root, "UPDATE items SET title = title || ', revised'")
            it.pack("one", week)
        if week < GONE:
            app = VaultMiddleware(load(it.root), it.vault)
            for archive in it.archives:
                archive.visit(app, week)
        found = it.gathered(week)
        target = it.folder / "back"
        shutil.rmtree(target, ignore_errors=True)
        is_whole = is_complete(recover(found, target, Keys()))
        came = listing(target / "library") if target.exists() else {}
        matches = [number for number, each in enumerate(it.snapshots) if each == came]
        back[week] = matches[-1] if is_whole and matches else None
        it.go_on(found, week)
    return it, back


def test_all_server_files_come_back_from_the_second_week_on(proof: tuple[Proof, dict[int, int | None]]) -> None:
    """Each week, 100 % of the files of one version, also when everything changes and after the site is gone."""
    it, back = proof
    assert [week for week in range(2, LAST + 1) if back[week] is None] == []
    assert back[ALL_MOVED] in {2, 3}
    assert all(back[week] == len(it.snapshots) - 1 for week in range(GONE, LAST + 1))
    assert all(
        len(body) <= LIMIT for archive in it.archives for _, kind, body in archive.kept.values() if "html" in kind
    )


def test_the_recovered_site_runs(proof: tuple[Proof, dict[int, int | None]]) -> None:
    """The library that came back answers every page as the lost one did, from its own database and documents."""
    it, _ = proof
    lost, found = load(it.root), load(it.folder / "back" / "library")
    for path in ("/", "/pdf/7.pdf", *(f"/item/{number}" for number in range(ITEMS))):
        assert asked(found, path) == asked(lost, path)
    assert b"revised" in asked(found, "/item/77")[2]


def test_straight_from_three_archives(proof: tuple[Proof, dict[int, int | None]], tmp_path: Path) -> None:
    """`unlost vault recover URL` asks three pywb archives for the lost site and brings its server back."""
    it, _ = proof
    files = [archive.write(tmp_path / archive.name) for archive in it.archives]
    with serving_warcs(files, tmp_path) as servers:
        entries = [
            f'[[archive]]\nid = "a{number}"\nname = "A"\nkind = "pywb"\n'
            f'timemap = "http://127.0.0.1:{server.port}/t/timemap/link/"\n'
            f'timegate = "http://127.0.0.1:{server.port}/t/"\ncdx = "http://127.0.0.1:{server.port}/t/cdx"\n'
            f'replay = "http://127.0.0.1:{server.port}/t/{{datetime}}id_/{{uri}}"\n'
            'limits = [{ requests = 100000, seconds = 1, works = ["index", "replay"], source = "a test" }]\n'
            '[archive.lister]\nmatches = ["exact", "prefix", "host", "domain"]\n'
            'rows_per_page = { value = 100000, source = "a test" }\n'
            for number, server in enumerate(servers)
        ]
        registry = tmp_path / "archives.toml"
        registry.write_text("\n".join(entries))
        (tmp_path / "home").mkdir()
        done = unlost(
            "vault", "recover", f"{SITE}/", "-o", str(tmp_path / "server"), "--archives", str(registry), "--recovery",
            str(tmp_path / "recovery"), env={"UNLOST_HOME": str(tmp_path / "home"), "UNLOST_CONTACT": "a@b.example"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
    assert listing(tmp_path / "server" / "library") == it.snapshots[-1]
