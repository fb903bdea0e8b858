"""Tests of the figures of a report."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.report.recovery.states import NOW, SITE, SampleResource, make_large_state, make_state, store_listing
from unlost.errors import InputError
from unlost.html import LinkKind
from unlost.recovery.state import FinishedResource, ListingStatus, RecoveryState, ResourceStatus, StateReader
from unlost.report.recovery import MAX_TYPES, RecoveryStats, collect_stats

MANY = 100_000


def collect(folder: Path) -> RecoveryStats:
    """Return the figures of a recovery."""
    with StateReader(folder) as state:
        return collect_stats(state)


def test_empty_recovery_has_no_figures(tmp_path: Path) -> None:
    """A recovery without resources has no share."""
    found = collect(make_state(tmp_path / "r", [], url=None))
    assert (found.url, found.total, found.share, found.first, found.archive_ids()) == (None, 0, None, None, [])


def test_single_resource_determines_all_figures(tmp_path: Path) -> None:
    """All figures are those of the one capture."""
    found = collect(make_state(tmp_path / "r", [SampleResource("", "20110401000000")]))
    assert (found.url, found.recovered, found.missing, found.share) == (SITE, 1, 0, 1.0)
    assert (found.first, found.last, found.started, found.ended) == ("20110401000000", "20110401000000", NOW, NOW)
    assert (found.kinds, found.months, found.archives) == ({"pages": 1}, {"201104": 1}, {"a": 1})


def test_recovery_with_only_missing_resources(tmp_path: Path) -> None:
    """They are counted by reason, and the share is 0."""
    found = collect(
        make_state(tmp_path / "r", [SampleResource("", reason="not-held"), SampleResource("x", reason="failed")])
    )
    assert (found.recovered, found.missing, found.share, found.first) == (0, 2, 0.0, None)
    assert found.reasons == {"not-held": 1, "failed": 1}


def test_each_resource_is_counted_in_its_category(tmp_path: Path) -> None:
    """Each resource is counted where it belongs, and nowhere else."""
    made = [
        SampleResource("", "20100101000000", archive="a", others=(("b", "20120101000000"), ("a", "20050101000000"))),
        SampleResource("moved", "20110101000000", archive="b", status=301),
        SampleResource("i.png", "20120101000000", archive="b", mime="image/png", use=LinkKind.REQUISITE),
        SampleResource("j.png", reason="not-held", use=LinkKind.REQUISITE),
        SampleResource("parked", "20150101000000", archive="b", reason="rejected", verdict=("parked", "for sale")),
        SampleResource("later", standing=ResourceStatus.QUEUED),
        SampleResource("unlinked", others=(("c", "20120101000000"),), standing=ResourceStatus.LISTED),
    ]
    folder = make_state(tmp_path / "r", made)
    store_listing(folder, "d", ListingStatus.TRUNCATED, "at its cap")
    found = collect(folder)
    assert (found.recovered, found.missing, found.queued, found.listed) == (3, 2, 1, 1)
    assert (found.pages, found.requisites) == ([2, 1], [1, 1])
    assert found.kinds == {"pages": 1, "redirects": 1, "images": 1}
    assert (found.archives, found.also_listed) == ({"a": 1, "b": 2}, {"b": 1})
    assert (found.rejected, found.rejected_by) == ({"parked": 1}, {"b": 1})
    assert found.archive_ids() == ["b", "a", "d"]
    assert found.listings == [("d", "cut", "at its cap")]


def test_requeued_recovered_resource_counts_as_recovered(tmp_path: Path) -> None:
    """It counts neither as missing nor as queued."""
    folder = make_state(tmp_path / "r", [SampleResource("", "20110401000000"), SampleResource("x", reason="not-held")])
    with RecoveryState(folder) as state:
        state.resources.requeue("1 = 1")
    found = collect(folder)
    assert (found.recovered, found.missing, found.queued) == (1, 0, 1)


def test_state_is_read_during_a_recovery(tmp_path: Path) -> None:
    """The reader sees committed changes and does not block the recovery."""
    folder = make_state(tmp_path / "r", [SampleResource("", "20110401000000"), SampleResource("x", reason="not-held")])
    with RecoveryState(folder) as state:
        state.resources.requeue("standing = 'missing'")
        assert collect(folder).missing == 1
        state.commit()
        assert (collect(folder).missing, collect(folder).queued) == (0, 1)


def test_change_during_reading_is_detected(tmp_path: Path) -> None:
    """A reader without a lock detects that a recovery has changed the state."""
    folder = make_state(tmp_path / "r", [SampleResource("", "20110401000000"), SampleResource("x", reason="not-held")])

    def read_while_it_begins() -> None:
        with StateReader(folder) as reader:
            collect_stats(reader)
            reader.check_unchanged()
            with RecoveryState(folder) as state:
                state.resources.requeue("1 = 1")
            with pytest.raises(InputError, match="try again"):
                reader.check_unchanged()

    with pytest.raises(InputError, match="try again"):
        read_while_it_begins()


def test_skipped_links_are_summed_over_runs(tmp_path: Path) -> None:
    """With other options all links are followed again, and the sum starts at 0."""
    folder = make_state(tmp_path / "r", [])
    with RecoveryState(folder) as state:
        state.store_skipped_links({}, {"too deep": 2})
        state.store_skipped_links(state.skipped_links(), {"too deep": 1, "too long": 4})
    assert collect(folder).skipped_links == {"too deep": 3, "too long": 4}
    with RecoveryState(folder) as state:
        plan = state.options()
        assert plan is not None
        state.store_options(type(plan)(plan.url, depth=3))
    assert collect(folder).skipped_links == {}


def test_rare_media_types_are_summed(tmp_path: Path) -> None:
    """The most frequent types are named, and the total is correct."""
    made = [SampleResource(f"{number}", "20110401000000", mime=f"text/x-{number}") for number in range(60)]
    made += [
        SampleResource("a", "20110401000000"),
        SampleResource("b", "20110401000000"),
        SampleResource("c", "20110401000000", mime=None),
    ]
    types, (others, of_others) = collect(make_state(tmp_path / "r", made)).top_types()
    assert types[0] == ("text/html", 2)
    assert (len(types), others) == (MAX_TYPES, 62 - MAX_TYPES)
    assert sum(count for _, count in types) + of_others == 63


@pytest.fixture(scope="module")
def large_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a large recovery."""
    return make_large_state(tmp_path_factory.mktemp("many") / "r", MANY)


def test_large_state_is_read_in_seconds(large_state: Path) -> None:
    """All resources are counted and yielded in order."""
    start = time.monotonic()
    last = 0

    def each(ended: FinishedResource) -> None:
        nonlocal last
        number = int(ended.uri.removeprefix(SITE).removesuffix(".html"))
        assert number == last + 1
        assert [name for name, _ in ended.holders] == ["a", "b"]
        last = number

    with StateReader(large_state) as state:
        found = collect_stats(state, each)
    assert (found.recovered, found.missing, found.rejected.total()) == (90_000, 10_000, 1_000)
    assert (found.also_listed, last) == ({"b": 90_000}, MANY)
    assert time.monotonic() - start < 60, "about 3 seconds on an idle machine"


def test_memory_is_independent_of_site_size(large_state: Path, tmp_path: Path) -> None:
    """The report command needs hardly more memory for 100,000 resources than for ten."""
    small, large = (
        _peak(folder, tmp_path / name)
        for folder, name in ((make_large_state(tmp_path / "r", 10), "s"), (large_state, "l"))
    )
    assert large - small < 40_000, "KiB"
    assert len((tmp_path / "l" / "summary.tsv").read_bytes().splitlines()) == MANY
    assert (tmp_path / "l" / "index.html").stat().st_size < 1_000_000


def _peak(folder: Path, output: Path) -> int:
    """Return the peak memory of a report in KiB."""
    code = (
        "import resource, sys; from unlost.cli.main import app;"
        "app(sys.argv[1:], standalone_mode=False);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    arguments = [sys.executable, "-c", code, "report", str(folder), "-o", str(output)]
    done = subprocess.run(arguments, capture_output=True, check=True, timeout=120)
    return int(done.stderr.split()[-1])
