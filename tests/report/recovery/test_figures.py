"""Tests of the numbers of a report, on states that no archive was asked for."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.report.recovery.states import NOW, SITE, Made, make, make_many, note_list
from unlost.errors import InputError
from unlost.html import LinkKind
from unlost.recover.state import FinishedResource, ListingStatus, RecoveryState, ResourceStatus, StateReader
from unlost.report.recovery import MAX_TYPES, RecoveryStats, collect_stats

MANY = 100_000


def figures(folder: Path) -> RecoveryStats:
    """Return the numbers of a recovery."""
    with StateReader(folder) as state:
        return collect_stats(state)


def test_nothing_at_all(tmp_path: Path) -> None:
    """A recovery that has not begun has no numbers, and no share."""
    found = figures(make(tmp_path / "r", [], url=None))
    assert (found.url, found.total, found.share, found.first, found.archive_ids()) == (None, 0, None, None, [])


def test_one_resource(tmp_path: Path) -> None:
    """Everything is that of the one copy."""
    found = figures(make(tmp_path / "r", [Made("", "20110401000000")]))
    assert (found.url, found.recovered, found.missing, found.share) == (SITE, 1, 0, 1.0)
    assert (found.first, found.last, found.started, found.ended) == ("20110401000000", "20110401000000", NOW, NOW)
    assert (found.kinds, found.months, found.archives) == ({"pages": 1}, {"201104": 1}, {"a": 1})


def test_all_is_missing(tmp_path: Path) -> None:
    """By their reasons; nothing came back, which is a share, too."""
    found = figures(make(tmp_path / "r", [Made("", reason="not-held"), Made("x", reason="failed")]))
    assert (found.recovered, found.missing, found.share, found.first) == (0, 2, 0.0, None)
    assert found.reasons == {"not-held": 1, "failed": 1}


def test_a_bit_of_everything(tmp_path: Path) -> None:
    """Each is counted where it belongs, and nowhere else."""
    made = [
        Made("", "20100101000000", archive="a", others=(("b", "20120101000000"), ("a", "20050101000000"))),
        Made("moved", "20110101000000", archive="b", status=301),
        Made("i.png", "20120101000000", archive="b", mime="image/png", use=LinkKind.REQUISITE),
        Made("j.png", reason="not-held", use=LinkKind.REQUISITE),
        Made("parked", "20150101000000", archive="b", reason="rejected", verdict=("parked", "for sale")),
        Made("later", standing=ResourceStatus.QUEUED),
        Made("unlinked", others=(("c", "20120101000000"),), standing=ResourceStatus.LISTED),
    ]
    folder = make(tmp_path / "r", made)
    note_list(folder, "d", ListingStatus.TRUNCATED, "at its cap")
    found = figures(folder)
    assert (found.recovered, found.missing, found.queued, found.listed) == (3, 2, 1, 1)
    assert (found.pages, found.requisites) == ([2, 1], [1, 1])
    assert found.kinds == {"pages": 1, "redirects": 1, "images": 1}
    assert (found.archives, found.also_listed) == ({"a": 1, "b": 2}, {"b": 1})
    assert (found.rejected, found.rejected_by) == ({"parked": 1}, {"b": 1})
    assert found.archive_ids() == ["b", "a", "d"]
    assert found.listings == [("d", "cut", "at its cap")]


def test_what_came_back_stays_while_its_links_are_followed_again(tmp_path: Path) -> None:
    """Put back into the queue, it is not counted as missing, nor as to come."""
    folder = make(tmp_path / "r", [Made("", "20110401000000"), Made("x", reason="not-held")])
    with RecoveryState(folder) as state:
        state.resources.requeue("1 = 1")
    found = figures(folder)
    assert (found.recovered, found.missing, found.queued) == (1, 0, 1)


def test_it_is_read_while_a_recovery_is_at_work(tmp_path: Path) -> None:
    """Whoever holds the state goes on; the report has what was kept by then."""
    folder = make(tmp_path / "r", [Made("", "20110401000000"), Made("x", reason="not-held")])
    with RecoveryState(folder) as state:
        state.resources.requeue("standing = 'missing'")
        assert figures(folder).missing == 1
        state.commit()
        assert (figures(folder).missing, figures(folder).queued) == (0, 1)


def test_a_recovery_that_begins_meanwhile_is_noticed(tmp_path: Path) -> None:
    """A state at rest is read without telling anybody; whoever changed it then may have changed what was read."""
    folder = make(tmp_path / "r", [Made("", "20110401000000"), Made("x", reason="not-held")])

    def read_while_it_begins() -> None:
        with StateReader(folder) as reading:
            collect_stats(reading)
            reading.check_unchanged()
            with RecoveryState(folder) as state:
                state.resources.requeue("1 = 1")
            with pytest.raises(InputError, match="try again"):
                reading.check_unchanged()

    with pytest.raises(InputError, match="try again"):
        read_while_it_begins()


def test_links_that_were_not_followed_are_added_up(tmp_path: Path) -> None:
    """Over all runs; with other rules all links are followed again, and it begins anew."""
    folder = make(tmp_path / "r", [])
    with RecoveryState(folder) as state:
        state.store_skipped_links({}, {"too deep": 2})
        state.store_skipped_links(state.skipped_links(), {"too deep": 1, "too long": 4})
    assert figures(folder).skipped_links == {"too deep": 3, "too long": 4}
    with RecoveryState(folder) as state:
        plan = state.options()
        assert plan is not None
        state.store_options(type(plan)(plan.url, depth=3))
    assert figures(folder).skipped_links == {}


def test_types_without_end_are_counted_as_one(tmp_path: Path) -> None:
    """Servers can say anything: the most frequent are named, and the sum is right."""
    made = [Made(f"{number}", "20110401000000", mime=f"text/x-{number}") for number in range(60)]
    made += [Made("a", "20110401000000"), Made("b", "20110401000000"), Made("c", "20110401000000", mime=None)]
    types, (others, of_others) = figures(make(tmp_path / "r", made)).top_types()
    assert types[0] == ("text/html", 2)
    assert (len(types), others) == (MAX_TYPES, 62 - MAX_TYPES)
    assert sum(count for _, count in types) + of_others == 63


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a large recovery."""
    return make_many(tmp_path_factory.mktemp("many") / "r", MANY)


def test_a_hundred_thousand_resources(many: Path) -> None:
    """All are counted and given to whoever writes them, in order, in seconds."""
    begun = time.monotonic()
    last = 0

    def each(ended: FinishedResource) -> None:
        nonlocal last
        number = int(ended.uri.removeprefix(SITE).removesuffix(".html"))
        assert number == last + 1
        assert [name for name, _ in ended.holders] == ["a", "b"]
        last = number

    with StateReader(many) as state:
        found = collect_stats(state, each)
    assert (found.recovered, found.missing, found.rejected.total()) == (90_000, 10_000, 1_000)
    assert (found.also_listed, last) == ({"b": 90_000}, MANY)
    assert time.monotonic() - begun < 60, "some 3 seconds, if nobody else uses the machine"


def test_memory_does_not_grow_with_the_site(many: Path, tmp_path: Path) -> None:
    """The whole command, with all its files, takes hardly more for a hundred thousand resources than for ten."""
    small, large = (
        _peak(folder, tmp_path / name) for folder, name in ((make_many(tmp_path / "r", 10), "s"), (many, "l"))
    )
    assert large - small < 40_000, "KiB"
    assert len((tmp_path / "l" / "summary.tsv").read_bytes().splitlines()) == MANY
    assert (tmp_path / "l" / "index.html").stat().st_size < 1_000_000


def _peak(folder: Path, output: Path) -> int:
    """Return how many KiB a report takes at its peak."""
    code = (
        "import resource, sys; from unlost.cli.main import app;"
        "app(sys.argv[1:], standalone_mode=False);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    arguments = [sys.executable, "-c", code, "report", str(folder), "-o", str(output)]
    done = subprocess.run(arguments, capture_output=True, check=True, timeout=120)
    return int(done.stderr.split()[-1])
