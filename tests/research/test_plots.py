"""Plots by matplotlib: contents, determinism and escaping."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.run import unlost
from tests.cli.test_overlap import overlap, place
from tests.neighbours import chromium
from tests.research.factors.planted import plant
from unlost.check import AvailabilityState, FinishedVisit
from unlost.errors import UsageError
from unlost.research import plot_watch, validate_plot_path
from unlost.watch import SiteSurvey, WatchedSite

__all__ = ["place"]
STARTS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}

pytestmark = [  # warcio leaves files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.parametrize("ending", STARTS)
def test_overlap_plot_is_deterministic(place: Path, ending: str) -> None:
    """In each format, without a clock in it."""
    files = [place / f"{name}{ending}" for name in "ab"]
    for file in files:
        assert overlap(place, "--plot", str(file))[0] == 0
    assert files[0].read_bytes().startswith(STARTS[ending])
    assert files[0].read_bytes() == files[1].read_bytes()


def watched_site(name: str) -> list[WatchedSite]:
    """Return a watched site after some visits."""
    visits = [
        FinishedVisit(
            day,
            1e9 + day * 86_400,
            day != 2,
            Counter({AvailabilityState.REPLICATED: 3 + day, AvailabilityState.VULNERABLE: 2}),
            0,
            "fine",
            "",
        )
        for day in range(5)
    ]
    return [WatchedSite(name, SiteSurvey(visits, [], None, None), [])]


@pytest.mark.browser
def test_watch_plot_shows_states_and_plain_names(tmp_path: Path) -> None:
    """Title and legend are verbatim, also with dollars, brackets and characters without a glyph."""
    plot_watch(watched_site(r"$\frac{1}{$ <b>\u202e\U0001f600"), tmp_path / "w.svg")
    with chromium.browser() as browser:
        page = browser.new_page()
        page.goto((tmp_path / "w.svg").as_uri())
        assert page.locator("svg path").count() > 10
        assert page.locator("script, b").count() == 0
    plot_watch(watched_site("x"), tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000
    plot_watch([], tmp_path / "none.png")


def test_factor_plot_shows_coefficients(tmp_path: Path) -> None:
    """In addition to the output; also without models."""
    truth = plant(tmp_path, 3, 5)
    done = unlost("report", "--factors", *map(str, truth.folders), "--plot", str(tmp_path / "f.pdf"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    assert unlost("report", str(truth.folders[0]), "--plot", "x.png").returncode == 2


def test_invalid_plot_path_is_rejected_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another format, or a missing matplotlib: the message says what to install."""
    with pytest.raises(UsageError, match=r"\.png, \.pdf or \.svg"):
        validate_plot_path(tmp_path / "x.gif")
    monkeypatch.setattr("unlost.research.plots.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"unlost\[plots\]"):
        validate_plot_path(tmp_path / "x.png")
    validate_plot_path(None)


def test_only_plots_imports_matplotlib() -> None:
    """Other commands neither wait for it nor need it."""
    code = "import sys; import unlost.cli.overlap, unlost.cli.watch; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
