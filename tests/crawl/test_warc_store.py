"""WARC files of a crawl, readable and replayable by other software, also after failures."""

import asyncio
import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.cli.run import unlost
from tests.crawl.live_site import Page, by_path, crawl_pages, html, redirect_to, serve_live_site
from tests.external import nginx, pywb
from tests.recovery.recovery_output import _members
from tests.virtual_clock import VirtualClock
from unlost.crawl import CrawlConfig, crawl, read_resources

SITE = {
    "/": html("/page?q=1", "/gone", "/old", more='<img src="/i.png">'),
    "/page?q=1": Page(
        gzip.compress("<p>grüße</p>".encode() * 50, mtime=0),
        200,
        {"content-type": "text/html; charset=utf-8", "content-encoding": "gzip", "x-was": "here"},
    ),
    "/old": redirect_to("{base}/"),
    "/i.png": Page(bytes(range(256)) * 900, 200, {"content-type": "image/png"}),
}  # fmt: skip


def records(folder: Path) -> list[tuple[str, str, bytes]]:
    """Return type, URL and content of every record; warcio verifies digests, and each is a gzip member."""
    found = []
    for path in sorted((folder / "warc").iterdir()):
        assert all(text is not None for _, text in _members(path.read_bytes())), f"{path.name} is incomplete"
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                head = record.rec_headers
                found.append(
                    (record.rec_type, head.get_header("WARC-Target-URI") or "", record.content_stream().read())
                )
    return found


def test_each_response_is_stored_with_its_request(tmp_path: Path) -> None:
    """Records are at the locations in the state and have correct digests."""
    _, resources, site = crawl_pages(SITE, tmp_path / "crawl")
    stored = records(tmp_path / "crawl")
    assert [kind for kind, _, _ in stored] == ["warcinfo", *["response", "request"] * 5]
    bodies = {uri: body for kind, uri, body in stored if kind == "response"}
    assert bodies[f"{site.url}/page?q=1"] == "<p>grüße</p>".encode() * 50
    assert bodies[f"{site.url}/i.png"] == SITE["/i.png"].body
    for each in resources:
        assert each.file is not None
        with (tmp_path / "crawl" / "warc" / each.file).open("rb") as file:
            file.seek(each.offset or 0)
            record = next(iter(ArchiveIterator(file)))
            assert record.rec_headers.get_header("WARC-Target-URI") == each.uri
            assert record.rec_headers.get_header("WARC-Payload-Digest") == each.digest


def test_pywb_replays_a_crawl(tmp_path: Path) -> None:
    """Raw bytes, statuses, headers and redirects, out of several files, by our index of them."""
    _, resources, site = crawl_pages(SITE, tmp_path / "crawl", warc_bytes=1)
    warcs = sorted((tmp_path / "crawl" / "warc").iterdir())
    assert len(warcs) == 5
    index = tmp_path / "index.cdxj"
    done = unlost("index", "build", *map(str, warcs), "-o", str(index))
    assert (done.returncode, done.stderr) == (0, b"")
    timestamp = resources[0].seen or ""
    with pywb.serve_index(index, tmp_path / "crawl" / "warc", tmp_path) as server:

        def fetch(path: str) -> pywb.RawCapture:
            return server.fetch(timestamp, site.url + path)

        assert (fetch("/").status, fetch("/").body) == (200, SITE["/"].body)
        page = fetch("/page?q=1")
        assert (page.body, page.headers["x-was"]) == ("<p>grüße</p>".encode() * 50, "here")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "content-encoding" not in page.headers
        assert (fetch("/gone").status, fetch("/i.png").body) == (404, SITE["/i.png"].body)
        assert (fetch("/old").status, fetch("/old").headers["location"].endswith(f"{site.url}/")) == (301, True)


def test_nginx_site_is_stored_byte_for_byte(tmp_path: Path) -> None:
    """Files of several types, folder redirects and errors of a real server."""
    folder = tmp_path / "site"
    (folder / "sub").mkdir(parents=True)
    (folder / "work").mkdir()
    (folder / "index.html").write_text('<a href="/sub">s</a><a href="/none">n</a><img src="pic.bin">')
    (folder / "sub" / "index.html").write_text('<a href="../deep.html">d</a>')
    (folder / "deep.html").write_text("<p>deep")
    (folder / "pic.bin").write_bytes(bytes(range(256)) * 3_000)
    work = tmp_path / "work"
    work.mkdir()
    # Files are served unchanged, by name and without types.
    with nginx.serve_folder(folder, work) as port:
        base = f"http://127.0.0.1:{port}"
        plan = CrawlConfig((f"{base}/index.html", f"{base}/sub/index.html"), delay=0.0)
        result = asyncio.run(crawl(plan, tmp_path / "crawl", contact="me@example.org"))
    found = {each.uri.removeprefix(base): each for each in read_resources(tmp_path / "crawl")}
    assert result.is_done
    assert {path: each.status for path, each in found.items()} == {
        "/index.html": 200, "/sub/index.html": 200, "/none": 404, "/pic.bin": 200, "/deep.html": 200,
    }  # fmt: skip
    bodies = {uri.removeprefix(base): body for kind, uri, body in records(tmp_path / "crawl") if kind == "response"}
    assert bodies["/pic.bin"] == (folder / "pic.bin").read_bytes()
    assert found["/pic.bin"].etag
    assert found["/pic.bin"].last_modified


@pytest.mark.parametrize("lost", ["end", "all", "state"])
def test_only_lost_records_are_fetched_again(lost: str, tmp_path: Path) -> None:
    """After loss of a file's end, of a whole file, or of the state alone."""

    async def run() -> None:
        folder = tmp_path / "crawl"
        async with serve_live_site(SITE) as site:
            await site.crawl(folder)
            before = {each.uri: each for each in read_resources(folder)}
            [file] = (folder / "warc").iterdir()
            whole = file.read_bytes()
            last = max(before.values(), key=lambda each: each.offset or 0)
            if lost == "end":
                file.write_bytes(whole[:-5])
            elif lost == "all":
                file.unlink()
            else:
                (folder / "state.sqlite").unlink()
                file.rename(f"{file}.open")
                Path(f"{file}.open").write_bytes(whole + b"\x1f\x8b\x08torn")
            site.server.requests.clear()
            await site.crawl(folder)
            after = {each.uri: each for each in read_resources(folder)}
            assert {uri: (each.status, each.digest) for uri, each in after.items()} == {
                uri: (each.status, each.digest) for uri, each in before.items()
            }
            expected = (
                [last.uri.removeprefix(site.url)] if lost == "end" else [uri.removeprefix(site.url) for uri in before]
            )
            assert sorted(site.paths) == sorted(expected)
            if lost == "state":
                assert file.read_bytes() == whole
            else:
                assert len(records(folder)) > 10

    asyncio.run(run())


def test_full_disk_stops_the_crawl_without_losing_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored records stay intact, and the same call resumes once there is space."""
    import errno
    import os

    from unlost.errors import InputError

    real, count = os.write, [0]

    def full(file: int, data: bytes) -> int:
        if bytes(data[:2]) == b"\x1f\x8b":
            count[0] += 1
            if count[0] == 4:
                real(file, data[:100])
                raise OSError(errno.ENOSPC, "no room")
        return real(file, data)

    async def run() -> None:
        async with serve_live_site(SITE) as site:
            with monkeypatch.context() as patch:
                patch.setattr(os, "write", full)
                with pytest.raises(InputError, match="no room"):
                    await site.crawl(tmp_path / "crawl")
            before = records(tmp_path / "crawl")
            assert len(before) == 5
            await site.crawl(tmp_path / "crawl")
            assert [kind for kind, _, _ in records(tmp_path / "crawl")].count("response") == 5

    asyncio.run(run())


def test_records_have_the_time_of_the_clock(tmp_path: Path) -> None:
    """WARC-Date is taken from the crawl's clock."""
    _, resources, site = crawl_pages({"/": html()}, tmp_path / "crawl")
    assert by_path(resources, site)["/"].seen == "20231114221320"
    assert VirtualClock().now() == 1_700_000_000.0


def test_kill_before_the_first_commit_leaves_no_duplicates(tmp_path: Path) -> None:
    """Records unknown to the state are fetched again and stored once."""

    async def run() -> None:
        folder = tmp_path / "crawl"
        async with serve_live_site({"/": html("/a"), "/a": html()}) as site:
            await site.crawl(folder)
            before = [each[:2] for each in records(folder)]
            [file] = (folder / "warc").iterdir()
            file.rename(f"{file}.open")
            with closing(sqlite3.connect(folder / "state.sqlite")) as state:
                state.execute("UPDATE address SET standing = 'queued', file = NULL, offset = NULL, size = NULL")
                state.commit()
            await site.crawl(folder)
            assert sorted(each[:2] for each in records(folder)) == sorted(before)
            assert list((folder / "warc").iterdir()) == [file]

    asyncio.run(run())
