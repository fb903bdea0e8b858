"""Tests of recoveries made by version 0.1.0: they open, are reported and exported, and resume with their options."""

import json
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.recovery.command import Command, CommandResult
from tests.recovery.recovery_runner import RecoveryRunner
from tests.recovery.stored_recoveries import ARCHIVE, CDN, NAMES, SITE, archive, holdings, unpack
from tests.recovery.stub_archive import Held, Stub
from unlost.recovery.state import RecoveryState, ResourceStatus, StateReader
from unlost.testing import FakeArchive, write_registry

_BEFORE = {"", "img/wheel.gif", "old.html", "page-0.html", "page-1.html", "site.css"}
_LINKED = _BEFORE | {f"page-{number}.html" for number in range(6)} | {f"img/{number}.gif" for number in range(6)}
_UNLINKED = {"unlinked.html", "unlinked.gif"}
_PARKED = {"for-sale.html", "sold-later.html"}


def _recovered(folder: Path) -> set[str]:
    """Return the recovered resources of the report: paths of the site, and URLs of other hosts."""
    done = unlost("report", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        event["uri"].removeprefix(SITE)
        for event in events
        if event["event"] == "resource" and event["outcome"] == "recovered"
    }


def _resume(folder: Path, running: FakeArchive, *options: str) -> CommandResult:
    """Run the command on a folder, with the current URL of the archive."""
    registry = write_registry(folder.parent / "archives.toml", running.registry_entry())
    return Command(registry, folder, folder.parent / "home").run(SITE, *options)


def _requested(running: FakeArchive) -> set[str]:
    """Return the URLs of the requested captures."""
    return {each.path.partition("id_/")[2] for each in running.requests if each.kind == "replay"}


@pytest.mark.parametrize("name", NAMES)
def test_old_recovery_opens(name: str, tmp_path: Path) -> None:
    """Readers and owners read the options, the queue and the recovered resources."""
    folder = unpack(tmp_path, name)
    with StateReader(folder) as state:
        assert {each.uri.removeprefix(SITE) for each in state.chosen_captures()} >= _BEFORE
    with RecoveryState(folder) as state:
        plan = state.options()
        assert plan is not None
        assert plan.url == SITE
        assert state.resources.counts()[ResourceStatus.QUEUED] > 0


def test_old_recovery_is_reported(tmp_path: Path) -> None:
    """The report counts recovered resources, and lists the rejected and the missing page."""
    folder = unpack(tmp_path, "default")
    assert _recovered(folder) == _BEFORE | {"page-2.html"}
    rejected = unlost("report", str(folder), "--list", "rejected")
    missing = unlost("report", str(folder), "--list", "missing")
    assert f"{SITE}for-sale.html" in rejected.stdout.decode()
    assert f"{SITE}nowhere.html" in missing.stdout.decode()
    assert unlost("report", str(folder)).returncode == 0
    assert (folder / "report").is_dir()


@pytest.mark.parametrize("form", ["offline", "hosting"])
@pytest.mark.parametrize("name", NAMES)
def test_old_recovery_is_exported(name: str, form: str, tmp_path: Path) -> None:
    """Recovered pages are files with links to each other; parked pages are exported only with --keep-rejected."""
    folder, to = unpack(tmp_path, name), tmp_path / "site"
    done = unlost("export", str(folder), "-o", str(to), "--as", form)
    assert done.returncode == 0, done.stderr
    files = {path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()}
    assert {"index.html", "page-0.html", "site.css", "img/wheel.gif"} <= files
    assert b"page-0.html" in (to / "index.html").read_bytes()
    assert ("for-sale.html" in files) == (name == "requisites")


def test_old_recovery_is_exported_as_wacz(tmp_path: Path) -> None:
    """The export as WACZ is not empty."""
    folder, to = unpack(tmp_path, "default"), tmp_path / "site.wacz"
    done = unlost("export", str(folder), "-o", str(to))
    assert done.returncode == 0, done.stderr
    assert to.stat().st_size > 1_000


def test_old_recovery_resumes_with_its_stored_options(tmp_path: Path) -> None:
    """Without options only linked URLs of the site are recovered, and no rejected page."""
    folder = unpack(tmp_path, "default")
    before = _recovered(folder)
    with archive() as running:
        done = _resume(folder, running)
        assert done.code == 0, done.stderr
        requested = _requested(running)
    assert not requested & {SITE + path for path in _UNLINKED | before}
    assert not any(CDN in each.path or "cdn.example" in each.path for each in running.requests)
    assert f"{SITE}sold-later.html" in requested
    assert _recovered(folder) == _LINKED | {"last.html"}
    rejected = unlost("report", str(folder), "--list", "rejected").stdout.decode()
    assert all(SITE + path in rejected for path in _PARKED)


def test_old_recovery_with_requisites_and_rejected_pages_resumes(tmp_path: Path) -> None:
    """With its stored options, a recovery with --requisites --keep-rejected recovers both."""
    folder = unpack(tmp_path, "requisites")
    with RecoveryState(folder) as state:
        plan = state.options()
    held = [
        Held(uri, str(capture.datetime), _bytes(capture.body), capture.mime, capture.status, capture.location)
        for uri, captures in holdings().items()
        for capture in captures
    ]
    stub = Stub(ARCHIVE, held)
    run = RecoveryRunner(folder, stub)
    assert plan is not None
    run.plan = plan
    assert run().is_done
    assert {f"{SITE}sold-later.html", f"{SITE}last.html", f"{CDN}photo.gif"} <= set(stub.fetched)
    assert not {SITE + path for path in _UNLINKED} & set(stub.fetched)
    expected = _LINKED | _PARKED | {"last.html", "spam.html", f"{CDN}font.css", f"{CDN}photo.gif"}
    assert _recovered(folder) == expected


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body
