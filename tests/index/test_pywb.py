"""What `unlost index build` makes is served by pywb, capture for capture."""

from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.cli.run import unlost
from tests.neighbours import pywb
from tests.real_data import DATA
from tests.warc.warcs import member, record
from unlost import dates, uri
from unlost.capture import Capture
from unlost.index import read_index_captures
from unlost.problems import Problems
from unlost.warc import open_warc_record


def build(warcs: list[Path], index: Path) -> list[Capture]:
    """Make the index with the command and return its captures, which must be sound."""
    done = unlost("index", "build", *map(str, warcs), "-o", str(index))
    assert (done.returncode, done.stderr) == (0, b"")
    problems = Problems()
    captures = list(read_index_captures(index, problems))
    assert problems.counts == {}
    return captures


def stored_body(folder: Path, capture: Capture) -> bytes:
    """Return a capture's body as pywb serves it: without chunks, other codings kept."""
    assert capture.filename is not None
    assert capture.offset is not None
    stored = open_warc_record(folder / capture.filename, capture.offset)
    body = stored.body.read()
    codings = [value.lower() for name, value in stored.http_headers if name.lower() == "transfer-encoding"]
    return pywb.without_chunks(body) if codings == ["chunked"] else body


def original_of(capture: Capture, captures: list[Capture]) -> Capture | None:
    """Return the capture that has a revisit's body: the nearest before it with the same digest, of any address."""
    if not capture.revisit:
        return capture
    same = [each for each in captures if each.digest == capture.digest and not each.revisit]
    return min(same, key=lambda each: abs(int(each.datetime) - int(capture.datetime)), default=None)


def redirects_to_itself(capture: Capture) -> bool:
    """Whether it leads to an address of the same key, which pywb passes over."""
    if capture.redirect is None:
        return False
    return uri.key(urljoin(capture.uri, capture.redirect)) == capture.key


def served(server: pywb.Pywb, captures: list[Capture], folder: Path) -> int:
    """Fetch every capture that can be fetched, compare date and body, and return how many there were."""
    count = 0
    for capture in captures:
        original = original_of(capture, captures)
        if capture.key is None or original is None or redirects_to_itself(original):
            continue
        # pywb redirects `http://example.com` to `http://example.com/`.
        address = capture.uri + "/" * (capture.uri.count("/") == 2)
        answer = server.fetch(capture.datetime, address)
        assert answer.headers.get("memento-datetime") == dates.to_http(capture.datetime), capture
        assert answer.status == (capture.status or original.status), capture
        assert answer.body == stored_body(folder, original), capture
        count += 1
    return count


def test_every_capture_is_served(tmp_path: Path) -> None:
    """Pages of one index over two files come back byte for byte, from CDXJ and from ZipNum."""
    warcs = [tmp_path / "a.warc.gz", tmp_path / "b.warc"]
    warcs[0].write_bytes(b"".join(member(record(number=number)) for number in range(5)))
    warcs[1].write_bytes(b"".join(record(number=number) for number in range(5, 9)))
    captures = build(warcs, tmp_path / "a.cdxj")
    assert len(captures) == 9
    with pywb.serving(tmp_path / "a.cdxj", tmp_path, tmp_path) as server:
        assert served(server, captures, tmp_path) == 9
        assert len(server.rows("http://example.com/3")) == 1
    assert [capture.uri for capture in build(warcs, tmp_path / "z.idx")] == [capture.uri for capture in captures]
    with pywb.serving(tmp_path / "z.idx", tmp_path, tmp_path) as server:
        assert served(server, captures, tmp_path) == 9


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "captures", "fetched"),
    [
        # Not fetched: a redirect to itself.
        ("iana-2021", 58, 57),
        ("iana-2020", 18, 18),
        # 5 dns rows, and 10 revisits whose originals are in no file.
        ("magazine", 80, 65),
        # 38 dns rows and a redirect to itself.
        ("archive-org-2008", 299, 260),
    ],
)
def test_every_capture_of_a_real_crawl_is_served(tmp_path: Path, name: str, captures: int, fetched: int) -> None:
    """Revisits come back with the body of what they revisit and with their own date."""
    folder = DATA / "warc"
    found = build([folder / f"{name}.warc.gz"], tmp_path / "a.cdxj")
    assert len(found) == captures
    with pywb.serving(tmp_path / "a.cdxj", folder, tmp_path) as server:
        assert served(server, found, folder) == fetched
