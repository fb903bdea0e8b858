"""Tests of recoveries as sites: selected captures, listed holdings and number of requests."""

import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.cli.test_recover import ARCHIVES, SITE
from tests.recovery.recovery_runner import SITE as STUB_SITE
from tests.recovery.recovery_runner import RecoveryRunner, page
from tests.recovery.stub_archive import Held, Stub
from unlost.comparison import open_site, readable_bytes
from unlost.errors import FailedError, InputError
from unlost.recovery import RecoverPolicy
from unlost.recovery.state import RecoveryState
from unlost.registry import RequestKind

NAME = STUB_SITE.removeprefix("http://").removeprefix("www.")


def test_a_recovery_has_the_selected_captures(tmp_path: Path) -> None:
    """A recovery by the command has the selected captures with their dates, and no temporary files are left."""
    folder = tmp_path / "mine"
    done = unlost("recover", SITE, "--archives", str(ARCHIVES), "-o", str(folder))
    assert done.returncode == 0
    before = sorted(folder.rglob("*"))
    read: list[int] = []
    found = open_site(folder, on_read=read.append)
    assert {name: each.datetime for name, each in found.resources.items()} == {
        "lost.example/": "20090504100000",
        "lost.example/style.css": "20090504100005",
        "lost.example/roses.html": "20140801090000",
        "lost.example/herbs": "20140801090020",
    }
    assert found.requests == 0
    assert b"<" in found.read_body(found.resources["lost.example/"], 1_000).content
    assert sorted(folder.rglob("*")) == before
    assert read[-1] == readable_bytes(folder)
    # The WARCs alone also contain captures that were not selected.
    files = open_site(folder / "warc")
    assert {name: each.digest for name, each in found.resources.items()}.items() <= {
        name: each.digest for name, each in files.resources.items()
    }.items()


def test_the_selected_capture_counts_instead_of_the_newest(tmp_path: Path) -> None:
    """The capture closest to the requested date counts; redirects and errors are not resources."""
    held = [
        page("", "one", "moved", date="20140101000000"),
        page("one", date="20100101000000"),
        Held(f"{STUB_SITE}one", "20180101000000", b"other"),
        Held(f"{STUB_SITE}moved", "20140101000000", b"", status=301, redirect="http://elsewhere.example/"),
    ]
    run = RecoveryRunner(tmp_path, Stub("a", held), at="20100101000000", all_versions=True)
    run()
    found = open_site(tmp_path)
    assert found.resources[f"{NAME}one"].datetime == "20100101000000"
    assert f"{NAME}moved" not in found.resources
    assert found.resources[f"{NAME}one"].migrated in (None, False)


def test_deduplicated_bodies_are_found(tmp_path: Path) -> None:
    """A revisit record resolves to the stored body."""
    body = b"<p>the same in both"
    held = [
        page("", "one", "two"),
        Held(f"{STUB_SITE}one", "20140101000000", body),
        Held(f"{STUB_SITE}two", "20140102000000", body),
    ]
    RecoveryRunner(tmp_path, Stub("a", held))()
    found = open_site(tmp_path)
    for name in ("one", "two"):
        assert found.read_body(found.resources[f"{NAME}{name}"], 99).content == body
    assert {found.resources[f"{NAME}{name}"].datetime for name in ("one", "two")} == {
        "20140101000000",
        "20140102000000",
    }


def test_holdings_that_were_not_fetched_are_listed(tmp_path: Path) -> None:
    """Unlinked and failed resources are listed; errors, misses and recovered resources are not."""
    held = [
        page("", "one", "two", "absent"),
        page("one"),
        page("unlinked"),
        page("absent"),
        Held(f"{STUB_SITE}gone", "20140101000000", b"", status=404),
    ]
    a = Stub("a", [*held, page("two")])

    def fail(question: str) -> None:
        if question.startswith("fetch") and question.endswith("two"):
            raise FailedError("timeout", "a", "timeout")
        if question.startswith("fetch") and question.endswith("absent"):
            a.held = [each for each in a.held if not each.uri.endswith("absent")]

    a.before = fail
    RecoveryRunner(tmp_path, a)()
    found = open_site(tmp_path)
    assert found.listed == {f"{NAME}two", f"{NAME}unlinked"}
    assert found.resources.keys() >= {NAME, f"{NAME}one"}


def test_requests_are_added_up_over_runs(tmp_path: Path) -> None:
    """Requests of interrupted runs count; older recoveries have no count."""
    a = Stub("a", [page("", "one"), page("one")])
    run = RecoveryRunner(tmp_path, a)
    run()
    assert open_site(tmp_path).requests is None
    run(requests_sent=Counter({("a", RequestKind.INDEX): 2, ("a", RequestKind.REPLAY): 3}))
    run(requests_sent=Counter({("a", RequestKind.REPLAY): 1, ("b", RequestKind.INDEX): 4}), should_stop=lambda: True)
    assert open_site(tmp_path).requests == 10
    with RecoveryState(tmp_path) as state:
        assert state.requests_by_archive() == {"a": {"index": 2, "replay": 4}, "b": {"index": 4}}


def test_requests_survive_an_interruption(tmp_path: Path) -> None:
    """Requests before a failure are counted."""
    a = Stub("a", [page("")])

    def interrupt(question: str) -> None:
        if question.startswith("fetch"):
            raise KeyboardInterrupt

    a.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        RecoveryRunner(tmp_path, a)(requests_sent=Counter({("a", RequestKind.REPLAY): 7}))
    with RecoveryState(tmp_path) as state:
        assert state.requests_by_archive() == {"a": {"replay": 7}}


def test_a_running_recovery_can_be_read(tmp_path: Path) -> None:
    """Reader and writer do not block each other."""
    RecoveryRunner(tmp_path, Stub("a", [page("", "one"), page("one")]), policy=RecoverPolicy.EXHAUSTIVE)()
    with RecoveryState(tmp_path) as state:
        state.set_fact("something", "changed")
        assert len(open_site(tmp_path).resources) == 2
        state.commit()
        assert len(open_site(tmp_path).resources) == 2
        assert state.fact("something") == "changed"


def test_letter_case_follows_the_option_of_the_comparison(tmp_path: Path) -> None:
    """The comparison normalises URLs again, independent of the option of the recovery."""
    stub = Stub("a", [page("", "Page.HTML"), page("Page.HTML")])
    RecoveryRunner(tmp_path, stub)()
    assert f"{NAME}page.html" in open_site(tmp_path, ignore_case=True).resources
    (tmp_path / "folded").mkdir()
    RecoveryRunner(tmp_path / "folded", stub, ignore_case=True)()
    assert f"{NAME}Page.HTML" in open_site(tmp_path / "folded").resources


def test_a_damaged_recovery_is_reported(tmp_path: Path) -> None:
    """Foreign state files, symbolic links, missing files and damaged files."""
    folder = tmp_path / "whole"
    folder.mkdir()
    RecoveryRunner(folder, Stub("a", [page("", "one"), page("one")]))()

    def copy(name: str) -> Path:
        return Path(shutil.copytree(folder, tmp_path / name))

    other = copy("other")
    (other / "state.sqlite").write_bytes(b"no database at all" * 99)
    with pytest.raises(InputError, match="not the state of a recovery"):
        open_site(other)
    gone = copy("gone")
    for file in (gone / "warc").iterdir():
        file.unlink()
    with pytest.raises(InputError, match="put them back"):
        open_site(gone)
    damaged = copy("damaged")
    (file,) = (damaged / "warc").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) * 2 // 3] ^= 0xFF
    file.write_bytes(data)
    found = open_site(damaged)
    assert found.problems.total
    linked = copy("linked")
    (linked / "state.sqlite").rename(linked / "mine")
    (linked / "state.sqlite").symlink_to("mine")
    with pytest.raises(InputError, match="a link"):
        open_site(linked)


@pytest.mark.parametrize(
    "said",
    [
        {"datetime": "lately"},
        {"datetime": "9" * 40},
        {"datetime": 20140101000000},
        {"status": "200"},
        {"mime": ["text/html"]},
        {"migrated": "yes"},
        {"digest": 1},
        {"uri": None},
        None,
    ],
)
def test_a_forged_state_is_not_trusted(said: dict[str, object] | None, tmp_path: Path) -> None:
    """Invalid values in the state are reported as errors of the state."""
    RecoveryRunner(tmp_path, Stub("a", [page("", "one"), page("one")]))()
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as state, state:
        (data,) = state.execute("SELECT data FROM record").fetchone()
        stored = json.loads(data)
        stored["capture"].update(said or {})
        state.execute("UPDATE record SET data = ?", (json.dumps(stored) if said else "[" * 100_000,))
    with pytest.raises(InputError, match="not the state of a recovery: the record of"):
        open_site(tmp_path)
