"""`unlost harvest`: output, files, invalid arguments and interruptions."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.crawl.live_site import LiveSite, Page, serve_live_site
from tests.recovery.background_server import run_in_background
from tests.refresh.harvest.site import etag_policy, log, records
from unlost.refresh import read_policy, serialize_policy, write_policy

PAGES = {f"/{number}": Page(b"<p>" + b"word " * 4_000, 200, {"etag": f'"{number}"'}) for number in range(4)}
POLITE = ("--delay", "0", "--contact", "me@example.org")


@pytest.fixture(scope="module")
def site() -> Iterator[LiveSite]:
    """Run a site whose pages never change, and whose server ignores conditional headers."""
    with run_in_background(serve_live_site(PAGES)) as found:
        yield found


def test_listed_urls_are_harvested_and_reported(site: LiveSite, tmp_path: Path) -> None:
    """As text with problems, as JSON Lines, and as an index."""
    urls = tmp_path / "urls.txt"
    urls.write_text("# pages\n" + "".join(f"{site.url}{path}\n" for path in PAGES) + "mailto:a@b.example\n")
    folder, index = str(tmp_path / "kept"), tmp_path / "held.cdxj"
    done = unlost("harvest", "--urls", str(urls), "-o", folder, *POLITE, "--cdxj", str(index))
    assert (done.returncode, done.stdout) == (5, b"4 new\n")
    assert b"bad-uri" in done.stderr
    assert len(index.read_text().splitlines()) == 4
    scheme = tmp_path / "scheme"
    write_policy(scheme, etag_policy())
    done = unlost("harvest", "-o", folder, "--scheme", str(scheme), *POLITE, "--json", "--audit", "1")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [(line["outcome"], line["way"], line["audit"]) for line in lines[:-1]] == [("unchanged", "head", "same")] * 4
    assert lines[-1]["outcomes"] == {"unchanged": 4}
    assert (lines[-1]["audited"], lines[-1]["lies"]) == (4, 0)


def test_index_and_warcs_of_another_folder_are_history(site: LiveSite, tmp_path: Path) -> None:
    """Nothing is downloaded again."""
    first, second, index = tmp_path / "first", tmp_path / "second", tmp_path / "i.cdxj"
    assert unlost("harvest", *(site.url + path for path in PAGES), "-o", str(first), *POLITE).returncode == 0
    warc = next((first / "warc").glob("*.gz"))
    assert unlost("index", "build", str(warc), "-o", str(index)).returncode == 0
    scheme = tmp_path / "scheme"
    write_policy(scheme, etag_policy())
    options = ["--history", str(index), "--warcs", str(first / "warc"), "--scheme", str(scheme)]
    done = unlost("harvest", *(site.url + path for path in PAGES), "-o", str(second), *options, *POLITE)
    assert (done.returncode, b"4 taken" in done.stderr) == (0, True), done.stderr
    assert sum(line["outcome"] == "skipped" for line in log(second)) >= 3, "an audit may be among them"
    assert all(record.type == "revisit" for record in records(second))


def test_interrupted_harvest_resumes(tmp_path: Path) -> None:
    """Ctrl-C ends it with 130; each page is visited once."""
    with run_in_background(serve_live_site(PAGES)) as site:
        urls = [site.url + path for path in PAGES]
        command = [str(UNLOST), "harvest", *urls, "-o", str(tmp_path / "kept"), "--delay", "3600"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            while not any(path == "/robots.txt" for path in site.server.paths):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert b"the same command goes on" in stderr
        done = unlost("harvest", *(site.url + path for path in PAGES), "-o", str(tmp_path / "kept"), *POLITE)
        assert done.returncode == 0, done.stderr
        assert b"going on with a round that was interrupted" in done.stderr
        assert sorted(path for path in site.server.paths if path != "/robots.txt") == sorted(PAGES)


def test_unreachable_host_is_deferred(tmp_path: Path) -> None:
    """The exit code says that pages are left."""
    done = unlost("harvest", "http://127.0.0.1:9/", "-o", str(tmp_path / "kept"), *POLITE)
    assert done.returncode == 4, done.stderr
    assert b"1 page still to be visited" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-o", "kept"], 3, b"no page is known there"),
        (["http://a.example/", "--warcs", ".", "-o", "kept"], 2, b"--history"),
        (["http://a.example/", "--scheme", "none", "-o", "kept"], 3, b"none: cannot be read: No such file"),
        (["http://a.example/", "--audit", "0", "-o", "kept"], 2, b"0.01"),
        (["ftp://a.example/", "-o", "kept"], 2, b"ftp"),
        (["http://a.example/", "-o", "no/such/folder"], 3, b"no/such"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: list[str], code: int, words: bytes, tmp_path: Path) -> None:
    """Before any request."""
    arguments = [str(tmp_path / each) if each == "kept" else each for each in arguments]
    done = unlost("harvest", *arguments)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(
    "change",
    [
        ('"most":0.01', '"most":1e999'),
        ('"audit":0.0', '"audit":-3'),
        ('"audit":0.0', '"audit":NaN'),
        ('"strengths":{}', '"strengths":{"same.same.same.stale.sized":0}'),
        ('"version":1', '"version":2'),
        ('"stated":null}\n', '"stated":null}\n{"host":"a.example","seen":{"same.same.same.stale.sized":[5,1]}}\n'),
        ('"stated":null}\n', '"stated":null}\n{"host":"a.example","seen":{"same.same.same.stale.sized":[1e999,1]}}\n'),
        ('"stated":null}\n', '"stated":null}\n[[[\n'),
    ],
)
def test_invalid_scheme_is_rejected(change: tuple[str, str], tmp_path: Path) -> None:
    """Invalid or out-of-range numbers are reported before any request."""
    text = b"".join(serialize_policy(etag_policy())).decode()
    assert text.count(change[0]) == 1
    (tmp_path / "scheme").write_text(text)
    assert read_policy(tmp_path / "scheme").skip_threshold == 0.01
    (tmp_path / "scheme").write_text(text.replace(*change))
    done = unlost("harvest", "http://a.example/", "--scheme", str(tmp_path / "scheme"), "-o", str(tmp_path / "kept"))
    assert done.returncode == 3
    assert b"expected a scheme file" in done.stderr
    assert not (tmp_path / "kept").exists()


def test_foreign_folder_is_rejected(tmp_path: Path) -> None:
    """An invalid state file, and symbolic links in place of files."""
    (tmp_path / "state.sqlite").write_bytes(b"no database at all, but long enough" * 99)
    assert unlost("harvest", "http://a.example/", "-o", str(tmp_path)).returncode == 3
    (tmp_path / "state.sqlite").unlink()
    (tmp_path / "visits.ndjson").symlink_to(tmp_path / "elsewhere")
    done = unlost("harvest", "http://a.example/", "-o", str(tmp_path), "--delay", "0")
    assert (done.returncode, b"a link" in done.stderr) == (3, True)
