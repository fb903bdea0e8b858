"""Rules for all tests: network only to loopback, no unmarked skips, real data if present; fixtures for a browser."""

import ipaddress
import itertools
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.real_data import DATA

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from xdist.remote import Producer
    from xdist.scheduler.protocol import Scheduling

    from tests.recovery.archives import Archives

# Derandomised, so that results are reproducible; the thorough profile uses a new seed each time.
hypothesis.settings.register_profile("fast", max_examples=100, derandomize=True, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=3_000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

SPARK = "tests/research/spark/"
# The slowest files, which are started first, so that no worker process ends with one of them.
LONGEST = (
    SPARK,
    "tests/test_packaging.py",
    "tests/jobs/test_worker.py",
    "tests/jobs/test_jobs_api.py",
    "tests/jobs/test_service_crashes.py",
    "tests/cli/test_demo.py",
    "tests/recovery/test_reference_site.py",
    "tests/webui/",
    "tests/cli/test_vault.py",
    "tests/vault/test_proof.py",
    "tests/export/test_browsing.py",
    "tests/aggregate/test_faults.py",
)
SKIPPABLE = {"real_data", "browser", "spark", "long"}
_seen = {"real_data": 0, "illegal_skips": 0}
_homes = tempfile.TemporaryDirectory(prefix="unlost-homes-")
_numbers = itertools.count()
_DAY = 86_400


def _guard(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse every connection that leaves this machine."""
    if event != "socket.connect":
        return
    address = arguments[1]
    if not isinstance(address, tuple):
        return  # a Unix socket
    host = str(address[0])
    try:
        local = ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local:
        raise PermissionError(f"a test tried to connect to {host}: only loopback is allowed")


sys.addaudithook(_guard)

# A background shell ignores SIGINT, and the commands that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name binary parameters by their length: gzip contains the time, and test ids must be stable."""
    if isinstance(val, bytes) and not (val.isascii() and val.decode("ascii").isprintable()):
        return f"{len(val)}-bytes"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the files that take longest; skip tests without their data."""
    items.sort(
        key=lambda item: next((n for n, path in enumerate(LONGEST) if item.nodeid.startswith(path)), len(LONGEST))
    )
    if DATA.is_dir():
        return
    missing = pytest.mark.skip(reason=f"real_data: {DATA} is not there")
    for item in items:
        if "real_data" in item.keywords:
            item.add_marker(missing)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Scheduling | None":
    """Distribute whole files in the order above, and all Spark tests to one process: each process starts a cluster."""
    if config.option.dist != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneCluster(LoadFileScheduling):  # type: ignore[misc,unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return SPARK if nodeid.startswith(SPARK) else str(super()._split_scope(nodeid))

    config.option.loadscopereorder = False  # the default begins with the files that have most tests
    return OneCluster(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Give each test a new home that does not exist yet."""
    os.environ["UNLOST_HOME"] = str(Path(_homes.name) / str(next(_numbers)))


@pytest.fixture
def far_from_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the last hour of a day, shift the clock of commands to noon, so that they do not wait for the next day."""
    if time.time() % _DAY > _DAY - 3_600:
        monkeypatch.setenv("TESTS_CLOCK_OFFSET", str(_DAY / 2))
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("shifted_clock")))


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the local time zone to Europe/Berlin."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def pytest_unconfigure() -> None:
    """Remove the homes of the tests."""
    _homes.cleanup()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count real-data tests that ran, and skips without a marker, in all worker processes."""
    if report.when == "call" and "real_data" in report.keywords and report.passed:
        _seen["real_data"] += 1
    if report.skipped and not SKIPPABLE & set(report.keywords):
        _seen["illegal_skips"] += 1


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI, fail on a skip without a marker and on a run without the real data."""
    if os.environ.get("CI") != "true" or exitstatus != 0 or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if _seen["illegal_skips"] or (DATA.is_dir() and not _seen["real_data"]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why the run counts as failed."""
    if _seen["illegal_skips"]:
        terminalreporter.write_line(f"{_seen['illegal_skips']} skipped without one of the markers {sorted(SKIPPABLE)}")
    if DATA.is_dir() and not _seen["real_data"]:
        terminalreporter.write_line("no real_data test ran although the data is there")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Run Chromium without a network, for one module: its event loop conflicts with others."""
    from tests.external import chromium

    with chromium.run_browser() as running:
        yield running


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """Open a window of the width of a phone."""
    from tests.report.browser_page import phone_page

    with phone_page(browser) as opened:
        yield opened


@pytest.fixture(scope="session")
def running_archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Archives"]:
    """Run three pywb servers with the reference site."""
    from tests.recovery.archives import archives
    from tests.recovery.reference_site import reference_site

    with archives(reference_site(), tmp_path_factory.mktemp("archives")) as running:
        yield running
