"""Sample captures for WARC tests, from simple to random, with the expected result of storing them."""

import gzip
import io
import re
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import strategies as st

from tests.virtual_clock import VirtualClock
from unlost import dates
from unlost.archives import FetchedCapture
from unlost.capture import Capture
from unlost.recovery import RecoveryRecord, WarcStore

DATE = "20140210000001"


def open_store(
    folder: Path, known: dict[str, int] | None = None, **options: int
) -> tuple[WarcStore, list[RecoveryRecord]]:
    """Open the WARC store in a folder and return it with the unknown records that were replayed."""
    warcs = WarcStore(folder, VirtualClock(), "unlost/0", **options)
    return warcs, list(warcs.replay_unknown_records(known or {}))


def capture(number: int = 0, **fields: object) -> Capture:
    """Return a capture of a page."""
    values = {"status": 200, "mime": "text/html", "archive": "a", "urim": f"http://a.example/{DATE}/{number}", **fields}
    return Capture(f"http://lost.example/{number}", f"example,lost)/{number}", DATE, **values)  # type: ignore[arg-type]


def make_fetched_capture(
    body: bytes = b"<p>hello</p>",
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),),
    of: Capture | None = None,
    truncated: str | None = None,
) -> FetchedCapture:
    """Return a fetched capture of a page."""
    of = of or capture()
    return FetchedCapture(of, headers, io.BytesIO(body), truncated, of.urim)


def body_of(warcs: WarcStore, record: RecoveryRecord) -> bytes:
    """Return the stored body of a record."""
    with warcs.open(record).body as body:
        return body.read()


def text_of(path: Path) -> str:
    """Return the decompressed text of a WARC, whose gzip members must be complete."""
    return gzip.decompress(path.read_bytes()).decode("latin-1")


# Any text, also with lone surrogates, which no file can have.
_texts = st.one_of(
    st.text(min_size=1, max_size=20),
    st.text(st.characters(exclude_categories=()), min_size=1, max_size=10),
    st.sampled_from(["a\r\nWARC-Type: response", "\n\n", ' "', "http://lost.example/a b", "<x>", "\x1f\x8b", "\udc80"]),
)
_some = st.none() | _texts
_numbers = st.none() | st.integers(0, 1 << 40)
_dates = st.datetimes(datetime(1996, 1, 1), datetime(2030, 1, 1)).map(  # noqa: DTZ001
    lambda moment: dates.from_datetime(moment.replace(tzinfo=UTC))
)

captures = st.builds(
    Capture,
    uri=_texts.map("http://lost.example/{}".format),  # readers expect no HTTP head for other schemes
    key=_some,
    datetime=_dates | st.just("20161231235960"),
    status=st.none() | st.integers(-1, 1000) | st.sampled_from([200, 301, 304, 404]),
    mime=_some | st.sampled_from(["text/html", "image/png"]),
    digest=_some,
    length=_numbers,
    redirect=_some,
    archive=_some,
    urim=_some,
    migrated=st.none() | st.booleans(),
    revisit=st.booleans(),
    revisit_of=st.none() | st.tuples(_texts, _dates),
    filename=_some,
    offset=_numbers,
    skip=_numbers,
)
_names = st.sampled_from(
    ["Content-Type", "content-length", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Location", "X-A",
     "X-Archive-Orig-Content-Length", "x-archive-orig-x-archive-orig-digest", "", "A b", "A:", "é", "A\r\nB"]
)  # fmt: skip
_values = st.text(st.characters(max_codepoint=255), max_size=20) | st.sampled_from(
    ["a\r\nSet-Cookie: b", "\r\n\r\n<p>", "gzip", "chunked", "5", "text/html; charset=utf-8", "\u20ac", "\ud800"]
)
fetched_captures = st.builds(
    FetchedCapture,
    capture=captures,
    headers=st.lists(st.tuples(_names | _texts, _values), max_size=6).map(tuple),
    body=st.builds(io.BytesIO, st.binary(max_size=200)),
    truncated=st.none() | st.sampled_from(["length", "time", "damage"]) | _texts,
    source=_some,
)


def expected_headers(headers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the headers expected after storing: those with valid names, without control characters."""
    expected = []
    for name, value in headers:
        if re.fullmatch(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+", name):
            text = re.sub(r"[\x00-\x08\n-\x1f\x7f]+", " ", value).strip(" \t")
            if any(ord(char) > 255 for char in text):
                text = text.encode("utf-8", "replace").decode("latin-1")
            expected.append((name, text))
    return expected
