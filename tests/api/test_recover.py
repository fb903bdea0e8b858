"""`unlost.recover` and `unlost.Recovery`."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

import unlost
from tests.recovery.partial_site import Response, serve_partial_site
from unlost.errors import DateError, InputError, UriError, UsageError
from unlost.recovery import RecoveryEvent, ResourceRecovered
from unlost.testing import FakeArchive, Fault, Held

SITE = "http://lost.example/"
WARCS = Path(__file__).parents[2] / "docs" / "examples" / "lost"
CAPTURES: Held = {
    SITE: [("2013", "<a href=about>older</a>"), ("2015", '<a href="about">a</a> <a href="gone">g</a><img src=i.png>')],
    f"{SITE}about": [("2014-02-10", "<p>about us")],
    f"{SITE}i.png": [("20140210000001", b"\x89PNG\r\n\x1a\n", "image/png")],
    f"{SITE}unlinked": [("2014", "<p>nobody links here")],
}


@pytest.fixture
def archive() -> Iterator[FakeArchive]:
    """Run an archive with captures of the site."""
    with FakeArchive(CAPTURES) as running:
        yield running


def test_recover_returns_resources_and_missing_urls(archive: FakeArchive, tmp_path: Path) -> None:
    """With archive, date, media type, URI-M and numbers of requests."""
    found = unlost.recover("lost.example", tmp_path / "it", archives=[archive.registry_entry()])
    assert found.folder == tmp_path / "it"
    assert found.counts() == {"listed": 0, "queued": 0, "recovered": 4, "substituted": 0, "missing": 1}
    resources = {each.url: each for each in found.resources()}
    assert set(resources) == {SITE, f"{SITE}about", f"{SITE}i.png", f"{SITE}unlinked"}
    about = resources[f"{SITE}about"]
    assert about.datetime == datetime(2014, 2, 10, tzinfo=UTC)
    assert (about.archive, about.mime, about.status) == ("fake", "text/html", 200)
    assert about.memento is not None
    assert about.memento.startswith(archive.address)
    assert [(each.url, each.links) for each in found.missing()] == [(f"{SITE}gone", 1)]
    assert found.run is not None
    assert found.run.is_done
    assert found.run.requests == {"fake": archive.count()}
    assert found.read(f"{SITE}i.png") == b"\x89PNG\r\n\x1a\n"


def test_options_select_captures(archive: FakeArchive, tmp_path: Path) -> None:
    """Policy, dates and expressions."""
    entry = archive.registry_entry()
    found = unlost.recover(SITE, tmp_path / "all", archives=[entry], policy="exhaustive", exclude=["png$"])
    assert {each.url for each in found.resources()} == {SITE, f"{SITE}about", f"{SITE}unlinked"}
    old = unlost.recover(SITE, tmp_path / "old", archives=[entry], at=date(2012, 1, 1), page=True)
    assert [(each.url, each.datetime.year) for each in old.resources()] == [(SITE, 2013)]
    late = unlost.recover(SITE, tmp_path / "late", archives=[entry], first="2015", page=True)
    assert [each.datetime.year for each in late.resources()] == [2015]


def test_recovery_resumes_after_a_limit(archive: FakeArchive, tmp_path: Path) -> None:
    """Only what is left is requested."""
    entry = archive.registry_entry()
    first = unlost.recover(SITE, tmp_path / "it", archives=[entry], limit=1)
    assert first.counts()["recovered"] == 1
    assert not (first.run and first.run.is_done)
    mementos = archive.count("replay")
    again = unlost.recover(SITE, tmp_path / "it", archives=[entry])
    assert again.counts()["recovered"] == 4
    assert archive.count("replay") == mementos + 3


def test_throttling_archive_is_reported_as_waiting(archive: FakeArchive, tmp_path: Path) -> None:
    """429 with a long Retry-After raises nothing; the result has the time."""
    archive.fail(Fault.too_many(retry_after=36_000), kinds=["replay"])
    found = unlost.recover(SITE, tmp_path / "it", archives=[archive.registry_entry()])
    assert found.run is not None
    assert not found.run.is_done
    until = found.run.waiting["fake"]
    assert until is not None
    assert (until - datetime.now(UTC)).total_seconds() > 30_000


def test_progress_callback_gets_events_and_may_raise(archive: FakeArchive, tmp_path: Path) -> None:
    """An exception ends the run, and the folder can be resumed."""
    events: list[str] = []
    entry = archive.registry_entry()

    class EnoughError(Exception):
        pass

    def raising(event: RecoveryEvent) -> None:
        if isinstance(event, ResourceRecovered):
            raise EnoughError

    with pytest.raises(EnoughError):
        unlost.recover(SITE, tmp_path / "it", archives=[entry], on_event=raising)
    found = unlost.recover(SITE, tmp_path / "it", archives=[entry], on_event=lambda event: events.append(event.event))
    assert found.counts()["recovered"] == 4
    assert "recovered" in events


def test_recover_and_recover_async_give_the_same_result(archive: FakeArchive, tmp_path: Path) -> None:
    """Also in a running loop, as in notebooks."""

    async def both() -> list[dict[str, int]]:
        entry = archive.registry_entry()
        waited = unlost.recover(SITE, tmp_path / "one", archives=[entry])
        awaited = await unlost.recover_async(SITE, tmp_path / "two", archives=[entry])
        return [waited.counts(), awaited.counts()]

    first, second = asyncio.run(both())
    assert first == second
    assert first["recovered"] == 4


def test_recovery_is_exported_and_reported(archive: FakeArchive, tmp_path: Path) -> None:
    """As zip, hosting folder, WACZ and reports."""
    found = unlost.recover(SITE, tmp_path / "it", archives=[archive.registry_entry()])
    found.export(tmp_path / "site.zip")
    with zipfile.ZipFile(tmp_path / "site.zip") as site:
        assert any(name.endswith("i.png") for name in site.namelist())
    found.export(tmp_path / "site", hosting=True)
    assert (tmp_path / "site" / ".htaccess").exists()
    found.export(tmp_path / "site.wacz")
    assert zipfile.is_zipfile(tmp_path / "site.wacz")
    german = found.report(tmp_path / "german", language="de")
    assert '<html lang="de">' in german.read_text()
    page = found.report()
    assert "lost.example" in page.read_text()
    assert (german.parent / "report.json").read_bytes() == (page.parent / "report.json").read_bytes()
    lines = (page.parent / "report.json").read_text().splitlines()
    assert [json.loads(line).get("uri") for line in lines].count(f"{SITE}about") == 1
    assert unlost.compare(tmp_path / "it", tmp_path / "site.wacz").counts.identical == 4
    with pytest.raises(UsageError, match="does not apply to wacz"):
        found.export(tmp_path / "other.wacz", hosting=True)


def test_recovery_is_opened_by_its_folder(archive: FakeArchive, tmp_path: Path) -> None:
    """It has everything except the result of the run."""
    unlost.recover(SITE, tmp_path / "it", archives=[archive.registry_entry()])
    found = unlost.Recovery(tmp_path / "it")
    assert found.run is None
    assert found.counts()["recovered"] == 4
    with pytest.raises(InputError, match="did not come back"):
        found.read(f"{SITE}gone")
    with pytest.raises(InputError, match="No such file or directory"):
        unlost.Recovery(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"url": "mailto:me"}, UriError, "not a web page"),
        ({"at": "never"}, DateError, "expected such as"),
        ({"first": "2015", "last": "2014"}, UsageError, "later than"),
        ({"policy": "greedy"}, UsageError, "expected naive, knowledgeable, exhaustive"),
        ({"include": "one"}, UsageError, "expected a list of texts"),
        ({"exclude": ["("]}, UsageError, "is no regular expression"),
        ({"limit": 0}, UsageError, "limit: expected a number from 1 on, found 0"),
        ({"only": ["other"]}, UsageError, "there are fake"),
        ({"archives": []}, UsageError, "no archive to ask"),
        ({"contact": "(me)"}, UsageError, "contact"),
    ],
)
def test_invalid_arguments_raise(
    archive: FakeArchive, tmp_path: Path, options: dict[str, object], error: type[Exception], message: str
) -> None:
    """With one sentence, and no folder is left."""
    arguments = {"url": SITE, "archives": [archive.registry_entry()], **options}
    with pytest.raises(error, match=message):
        unlost.recover(output=tmp_path / "it", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "it").exists()


def test_folder_in_use_is_rejected(archive: FakeArchive, tmp_path: Path) -> None:
    """By a second recovery at the same time."""
    entry = archive.registry_entry()
    errors: list[str] = []

    def again(event: RecoveryEvent) -> None:
        if isinstance(event, ResourceRecovered) and not errors:
            try:
                unlost.recover(SITE, tmp_path / "it", archives=[entry])
            except InputError as error:
                errors.append(str(error))

    unlost.recover(SITE, tmp_path / "it", archives=[entry], on_event=again)
    assert len(errors) == 1


_INTERRUPTED = """
import sys, unlost
from pathlib import Path
try:
    unlost.recover("http://lost.example/", sys.argv[2], archives=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interruption_raises_keyboard_interrupt(tmp_path: Path) -> None:
    """Results so far are stored, and nothing is printed."""
    from tests.waiting import wait_until
    from unlost.testing import write_registry

    with FakeArchive(CAPTURES) as archive:
        registry = write_registry(tmp_path / "archives.toml", archive.registry_entry())
        archive.fail(Fault.slow(3_600), kinds=["replay"])
        command = [sys.executable, "-c", _INTERRUPTED, str(registry), str(tmp_path / "it")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as process:
            wait_until(lambda: archive.count("replay") > 0)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        assert (output, errors, process.returncode) == (b"interrupted\n", b"", 0)
        archive.heal()
        with closing(sqlite3.connect(tmp_path / "it" / "state.sqlite")) as state:
            assert state.execute("SELECT count(*) FROM capture").fetchone()[0] > 0
        assert unlost.recover(SITE, tmp_path / "it", archives=registry).counts()["recovered"] == 4


def test_recovery_from_pywb_equals_its_source(tmp_path: Path) -> None:
    """An earlier recovery is served by pywb; the aggregator finds the page."""
    from tests.external.pywb import serve_warcs

    with FakeArchive(CAPTURES) as archive:
        first = unlost.recover(SITE, tmp_path / "first", archives=[archive.registry_entry()])
    first.export(tmp_path / "site.warc.gz")
    (tmp_path / "servers").mkdir()
    with serve_warcs([tmp_path / "site.warc.gz"], tmp_path / "servers") as (pywb,):
        entry = pywb.archive("pywb")
        again = unlost.recover(SITE, tmp_path / "again", archives=[entry])
        with unlost.Aggregator([entry]) as aggregator:
            found = aggregator.closest(f"{SITE}about", "2020")
    assert unlost.compare(first.folder, again.folder).counts.identical == 4
    assert again.read(f"{SITE}about") == first.read(f"{SITE}about")
    assert found is not None
    assert found.datetime == datetime(2014, 2, 10, tzinfo=UTC)


def test_files_are_the_only_sources(tmp_path: Path) -> None:
    """With an empty list of archives; one path or several."""
    first = unlost.recover(SITE, tmp_path / "one", archives=[], warc=WARCS / "first")
    assert (first.counts()["recovered"], first.run and first.run.requests) == (3, {})
    both = unlost.recover(SITE, tmp_path / "both", archives=(), warc=[WARCS / "first", str(WARCS / "second")])
    assert both.counts()["recovered"] == 4
    with pytest.raises(InputError, match="nowhere"):
        unlost.recover(SITE, tmp_path / "none", archives=[], har=tmp_path / "nowhere.har")
    with pytest.raises(UsageError, match="no archive to ask"):
        unlost.recover(SITE, tmp_path / "none", archives=[])
    with pytest.raises(UsageError, match="`live` and `last`"):
        unlost.recover(SITE, tmp_path / "none", archives=[], live=True, last="2014")
    assert not (tmp_path / "none").exists()


def test_live_site_is_a_source(tmp_path: Path) -> None:
    """Its requests are counted under the id `live`."""
    with serve_partial_site({"/": Response(b"<p>home")}) as site:
        found = unlost.recover(site.base, tmp_path / "it", archives=[], live=True, delay=0, contact="me@example.org")
        assert found.counts()["recovered"] == 1
        assert found.run is not None
        assert found.run.requests == {"live": len(site.requested)}
