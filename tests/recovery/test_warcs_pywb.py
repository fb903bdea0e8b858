"""Tests that pywb replays the WARCs of a recovery unchanged."""

from pathlib import Path

from tests.cli.run import unlost
from tests.external import pywb
from tests.recovery.sample_captures import capture, make_fetched_capture, open_store


def test_pywb_replays_stored_captures(tmp_path: Path) -> None:
    """Raw bytes, statuses, headers, redirects and revisits are replayed by our index."""
    folder = tmp_path / "warc"
    warcs, _ = open_store(folder, max_bytes=1)
    page = b"<!DOCTYPE html><p>gr\xc3\xbc\xc3\x9fe</p>"
    sent = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Encoding", "gzip"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "3"),
        ("X-Was", "here"),
        ("Broken name", "x"),
        ("X-Split", "a\r\nX-Planted: b"),
    )
    first = warcs.store(make_fetched_capture(page, sent, of=capture(1)), None)
    warcs.store(make_fetched_capture(b"gone", of=capture(2, status=404)), None)
    moved = warcs.store(
        make_fetched_capture(b"", (), of=capture(3, status=301, redirect="http://lost.example/1")), None
    )
    warcs.store(make_fetched_capture(bytes(range(256)) * 100, (), of=capture(4, mime="image/png")), None)
    warcs.store_revisit(capture(5, archive="b"), first)
    warcs.store_revisit(capture(6, status=None, mime=None), first)
    warcs.store_revisit(capture(7, status=302, redirect="http://lost.example/2"), moved)
    warcs.close()
    index = tmp_path / "index.cdxj"
    done = unlost("index", "build", *map(str, sorted(folder.iterdir())), "-o", str(index))
    assert (done.returncode, done.stderr) == (0, b"")
    with pywb.serve_index(index, folder, tmp_path) as server:

        def fetch(number: int) -> pywb.RawCapture:
            return server.fetch("20140210000001", f"http://lost.example/{number}")

        for number in (1, 5, 6):
            response = fetch(number)
            assert (response.status, response.body) == (200, page), number
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            assert (response.headers["x-was"], response.headers["x-split"]) == ("here", "a X-Planted: b")
            assert "content-encoding" not in response.headers
            assert "x-planted" not in response.headers
        assert (fetch(2).status, fetch(2).body) == (404, b"gone")
        assert fetch(3).status == 301
        assert fetch(3).headers["location"].endswith("http://lost.example/1")
        assert (fetch(4).headers["content-type"], fetch(4).body) == ("image/png", bytes(range(256)) * 100)
        assert fetch(7).status == 302
        assert fetch(7).headers["location"].endswith("http://lost.example/2")
