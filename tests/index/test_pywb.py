"""pywb serves indexes built by `unlost index build`, capture for capture."""

from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.cli.run import unlost
from tests.external import pywb
from tests.real_data import DATA
from tests.warc.warcs import member, record
from unlost import dates, uri
from unlost.capture import Capture
from unlost.index import read_index_captures
from unlost.problems import Problems
from unlost.warc import open_warc_record


def build_index(warcs: list[Path], index: Path) -> list[Capture]:
    """Build the index with the command and return its captures, which must be free of problems."""
    result = unlost("index", "build", *map(str, warcs), "-o", str(index))
    assert (result.returncode, result.stderr) == (0, b"")
    problems = Problems()
    captures = list(read_index_captures(index, problems))
    assert problems.counts == {}
    return captures


def stored_body(folder: Path, capture: Capture) -> bytes:
    """Return a capture's body as pywb serves it: dechunked, with content codings unchanged."""
    assert capture.filename is not None
    assert capture.offset is not None
    stored = open_warc_record(folder / capture.filename, capture.offset)
    body = stored.body.read()
    codings = [value.lower() for name, value in stored.http_headers if name.lower() == "transfer-encoding"]
    return pywb.decode_chunked(body) if codings == ["chunked"] else body


def find_original(capture: Capture, captures: list[Capture]) -> Capture | None:
    """Return the capture that a revisit refers to: the nearest one with the same digest, of any URL."""
    if not capture.revisit:
        return capture
    same = [each for each in captures if each.digest == capture.digest and not each.revisit]
    return min(same, key=lambda each: abs(int(each.datetime) - int(capture.datetime)), default=None)


def redirects_to_itself(capture: Capture) -> bool:
    """Return whether the capture redirects to a URL with the same key, which pywb skips."""
    if capture.redirect is None:
        return False
    return uri.key(urljoin(capture.uri, capture.redirect)) == capture.key


def count_served(server: pywb.Pywb, captures: list[Capture], folder: Path) -> int:
    """Fetch every capture that can be fetched, compare date and body, and return their number."""
    count = 0
    for capture in captures:
        original = find_original(capture, captures)
        if capture.key is None or original is None or redirects_to_itself(original):
            continue
        # pywb redirects `http://example.com` to `http://example.com/`.
        url = capture.uri + "/" * (capture.uri.count("/") == 2)
        response = server.fetch(capture.datetime, url)
        assert response.headers.get("memento-datetime") == dates.to_http(capture.datetime), capture
        assert response.status == (capture.status or original.status), capture
        assert response.body == stored_body(folder, original), capture
        count += 1
    return count


def test_pywb_serves_every_capture_of_built_index(tmp_path: Path) -> None:
    """An index over two files is served byte for byte, as CDXJ and as ZipNum."""
    warcs = [tmp_path / "a.warc.gz", tmp_path / "b.warc"]
    warcs[0].write_bytes(b"".join(member(record(number=number)) for number in range(5)))
    warcs[1].write_bytes(b"".join(record(number=number) for number in range(5, 9)))
    captures = build_index(warcs, tmp_path / "a.cdxj")
    assert len(captures) == 9
    with pywb.serve_index(tmp_path / "a.cdxj", tmp_path, tmp_path) as server:
        assert count_served(server, captures, tmp_path) == 9
        assert len(server.rows("http://example.com/3")) == 1
    assert [capture.uri for capture in build_index(warcs, tmp_path / "z.idx")] == [capture.uri for capture in captures]
    with pywb.serve_index(tmp_path / "z.idx", tmp_path, tmp_path) as server:
        assert count_served(server, captures, tmp_path) == 9


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "captures", "fetched"),
    [
        # Not fetched: a redirect to itself.
        ("iana-2021", 58, 57),
        ("iana-2020", 18, 18),
        # Not fetched: 5 dns rows, and 10 revisits without an original.
        ("magazine", 80, 65),
        # Not fetched: 38 dns rows and a redirect to itself.
        ("archive-org-2008", 299, 260),
    ],
)
def test_pywb_serves_every_capture_of_real_crawl(tmp_path: Path, name: str, captures: int, fetched: int) -> None:
    """Revisits are served with the original's body and their own date."""
    folder = DATA / "warc"
    indexed = build_index([folder / f"{name}.warc.gz"], tmp_path / "a.cdxj")
    assert len(indexed) == captures
    with pywb.serve_index(tmp_path / "a.cdxj", folder, tmp_path) as server:
        assert count_served(server, indexed, folder) == fetched
