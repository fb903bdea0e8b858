"""The dissertation's experiment: a digital library over 24 weeks, three archives that crawl it, then server loss."""

import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.cli.run import unlost
from tests.external.process import is_open, start_server
from tests.vault.fixtures import snapshot_folder
from tests.vault.library import change, make_library
from tests.vault.simulated_archives import ArchiveProfile, SimulatedArchive, registry_toml, serve_archives, week_start
from unlost import dates
from unlost.vault import BlockCollector, block_indices, collect_blocks, find_blocks, open_vault, segment_holdings

# warcio leaves temporary files to be collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ITEMS = 125
PAGE_LIMIT = 24 << 10
CUT = 7_500
"""Bytes of a page that the truncating archive stores: one block, but not always both blocks of a page with two."""

LINKED, MOVED, ALL_MOVED, GONE, LAST = 10, 13, 16, 19, 24
"""The weeks of the dissertation's table of events: a page gets a link, some blocks move, all do, the site is gone."""

PROFILES = (
    ArchiveProfile("deep", 0.3, is_deep=True),
    ArchiveProfile("cutting", 0.45, most=CUT, forgets=0.03),
    ArchiveProfile("minifying", 0.4, minifies=True, forgets=0.03),
)
PATHS = [*(f"/item/{number}" for number in range(ITEMS)), *(f"/pdf/{number}.pdf" for number in range(40))]


@contextmanager
def serve_library(root: Path, folder: Path, vault: Path | None = None) -> Iterator[str]:
    """Serve a library, with the middleware if there is a vault, and yield its URL."""
    here, programs = Path(__file__).parent, Path(sys.executable).parent

    def command(port: int) -> list[str | Path]:
        words = ["library_server:application", "-b", f"127.0.0.1:{port}", "--threads", "2"]
        return [programs / "gunicorn", *words, "--chdir", here]

    env = {"PATH": str(programs), "HOME": str(folder), "UNLOST_TEST_LIBRARY": str(root)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # what it would write is among the files that are compared
    env |= {} if vault is None else {"UNLOST_TEST_VAULT": str(vault)}
    folder.mkdir(exist_ok=True)
    with start_server(command, is_open, folder, env) as port:
        yield f"http://127.0.0.1:{port}"


def fetch_page(url: str) -> tuple[int, bytes]:
    """Return status and body of a page."""
    try:
        with urlopen(url, timeout=30) as response:  # noqa: S310  loopback
            return response.status, response.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


@dataclass
class Proof:
    """The experiment.

    Attributes:
        weeks: Weeks in which archives crawl; from the second one on, files are recovered.
        back: The recovered snapshot of the server by week; None for none.
        whole: Whether archives had enough blocks of any version, by week.
        lost: Last response of each page of the site, without blocks.
    """

    folder: Path
    weeks: tuple[int, ...]
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    back: dict[int, int | None] = field(default_factory=dict)
    whole: dict[int, bool] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    lost: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def run(self) -> "Proof":
        """Simulate all weeks."""
        self.root, self.vault = make_library(self.folder, ITEMS), self.folder / "vault"
        (self.folder / "home").mkdir()
        rng = random.Random(11)  # noqa: S311  not for secrets
        self.archives = [SimulatedArchive(profile, self.folder / profile.name, rng) for profile in PROFILES]
        with serve_library(self.root, self.folder / "bare") as site:
            self._pack(site, "directory", 1)
        with ExitStack() as stack:
            servers = serve_archives(self.archives, stack)
            (self.folder / "archives.toml").write_text(registry_toml(self.archives, servers))
            with serve_library(self.root, self.folder / "server", self.vault) as site:
                for week in (week for week in self.weeks if week < GONE):
                    self._change(site, week)
                    for archive in self.archives:
                        archive.visit(site, PATHS, week)
                    if week > 1:
                        self._recover(site, week)
            with serve_library(self.root, self.folder / "bare") as bare:
                self.lost = {path: fetch_page(bare + path) for path in ("/", *PATHS, "/none")}
            for week in (week for week in self.weeks if week >= GONE):
                self._recover(site, week)
        return self

    def _run_vault(self, *words: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        env = {"UNLOST_HOME": str(self.folder / "home"), "UNLOST_CONTACT": "owner@example.org"}
        done = unlost("vault", *words, env=env)
        assert done.returncode in codes, done.stderr.decode()
        return dict(json.loads(done.stdout)) if done.stdout else {"code": done.returncode}

    def _pack(self, site: str, segments: str, week: int) -> None:
        """Pack the current server files for the pages of the site, and store a snapshot."""
        self._run_vault(
            "pack", str(self.root), "--pages", f"{site}/", "--vault", str(self.vault), "--carrier", "template",
            "--page-limit", str(PAGE_LIMIT), "--segments", segments, "--delay", "0", "--date", _date(week), "--json",
        )  # fmt: skip
        self.snapshots.append(snapshot_folder(self.root))

    def _change(self, site: str, week: int) -> None:
        if week == LINKED:
            change(self.root, "UPDATE items SET listed = 1 WHERE id = 77")
            self._pack(site, "directory", week)
        if week == MOVED:
            (self.root / "tools" / "backup.sh").write_text("#!/bin/sh\nexec sqlite3 data/library.db .backup\n")
            self._pack(site, "directory", week)
        if week == ALL_MOVED:
            change(self.root, "UPDATE items SET title = title || ', revised'")
            self._pack(site, "one", week)

    def _recover(self, site: str, week: int) -> None:
        """Recover from the archives, compare, and finish an update if they have enough blocks."""
        target = self.folder / "back"
        shutil.rmtree(target, ignore_errors=True)
        archives = ("--archives", str(self.folder / "archives.toml"))
        recovery = ("--recovery", str(self.folder / f"recovery-{week}"))
        report = self._run_vault(
            "recover", f"{site}/", "-o", str(target), "--json", *archives, *recovery, codes=(0, 1, 4)
        )
        came = snapshot_folder(target / "library") if target.exists() else {}
        matches = [number for number, each in enumerate(self.snapshots) if each == came]
        self.back[week] = matches[-1] if matches and not report["short"] else None
        self.whole[week] = self._is_held()
        for kind, count in report["problems"].items():
            self.problems[kind] = self.problems.get(kind, 0) + count
        state = open_vault(self.vault)
        if len(state.generations) == 2 and week < GONE:
            status = self._run_vault(
                "status", "--vault", str(self.vault), "--site", f"{site}/", "--ask-archives", "--delay", "0", "--json",
                *archives, codes=(0, 1),
            )  # fmt: skip
            assert status["places"]["live"]["generations"][0]["whole"], "the old version stays until then"
            recovery_folder = str(self.folder / f"recovery-{week}")
            held = ("--held-in", recovery_folder, "--vault", str(self.vault), "--date", _date(week))
            code = self._run_vault("advance", *held, codes=(0, 1))["code"]
            assert (code == 0) >= status["next_stage_is_safe"], "all captures include the last ones"

    def _is_held(self) -> bool:
        """Return whether the archives have enough blocks of one version of every segment."""
        found = BlockCollector()
        for archive in self.archives:
            collect_blocks(archive.warcs, found)
        indices = block_indices(found)
        generations = open_vault(self.vault).generations
        return any(
            all(each.is_recoverable for each in segment_holdings(generation, indices)) for generation in generations
        )


def _date(week: int) -> str:
    return dates.from_epoch(str(int(week_start(week))))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((1, 2, MOVED, ALL_MOVED, GONE), id="decisive-weeks"),
        pytest.param(tuple(range(1, LAST + 1)), id="all-weeks", marks=pytest.mark.long),
    ],
)
def proof(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Proof:
    """Return the experiment after its last week."""
    return Proof(tmp_path_factory.mktemp("proof"), request.param).run()


def test_all_server_files_are_recoverable_from_the_second_week(proof: Proof) -> None:
    """Every week 100 % of the files of one version, also after a complete change and the loss of the site."""
    assert [week for week, is_whole in proof.whole.items() if is_whole and proof.back[week] is None] == []
    assert [week for week, is_whole in proof.whole.items() if not is_whole] == []
    assert proof.back.keys() == set(proof.weeks) - {1}
    last = len(proof.snapshots) - 1
    assert proof.back[ALL_MOVED] in {last - 1, last}
    assert all(proof.back[week] == last for week in proof.weeks if week >= GONE)


def test_simulated_archives_truncate_minify_and_forget(proof: Proof) -> None:
    """The archives did truncate pages inside blocks, minify, and drop captures."""
    deep, cutting, minifying = proof.archives
    assert cutting.truncated > 0
    assert proof.problems.get("cut", 0) > 0
    assert all(b"\n" not in body for _, mime, body in minifying.captures.values() if mime == "text/html")
    visited = [week for week in proof.weeks if week < GONE]
    assert len(list(deep.warcs.glob("*.warc.gz"))) == len(visited)
    blocks = [list(find_blocks(body, Counter())) for _, _, body in minifying.captures.values()]
    assert any(blocks)


def test_recovered_site_runs(proof: Proof) -> None:
    """The recovered library, served again, gives the same responses as the lost one."""
    with serve_library(proof.folder / "back" / "library", proof.folder / "again") as site:
        assert {path: fetch_page(site + path) for path in proof.lost} == proof.lost
        assert b"revised" in fetch_page(f"{site}/item/77")[1]
        assert fetch_page(f"{site}/pdf/7.pdf")[1].startswith(b"%PDF")
