"""Gzip of which no header tells: undone where there must be some, and nowhere else."""

import gzip
from io import BytesIO

import pytest

from unlost.archives import decompress_gzip_text
from unlost.errors import FailedError
from unlost.problems import Problems
from unlost.registry import Archive, ArchiveKind

PACKED = gzip.compress(b"<p>hello</p>" * 10)
PLACE = Archive("a", "A", ArchiveKind.WAYBACK)


@pytest.mark.parametrize(
    ("body", "mime", "expected"),
    [
        (PACKED, "text/html", b"<p>hello</p>" * 10),
        (PACKED, "application/xhtml+xml", b"<p>hello</p>" * 10),
        (PACKED, "application/json", b"<p>hello</p>" * 10),
        (PACKED, "application/octet-stream", PACKED),
        (PACKED, "application/gzip", PACKED),
        (PACKED, None, PACKED),
        (b"plain", "text/html", b"plain"),
        (b"", "text/html", b""),
        (b"\x1f\x8b", "text/html", b"\x1f\x8b"),
        (b"\x1f\x8b\x08 is no gzip at all", "text/html", b"\x1f\x8b\x08 is no gzip at all"),
        (gzip.compress(PACKED), "text/html", b"<p>hello</p>" * 10),
        (PACKED + PACKED, "text/html", b"<p>hello</p>" * 20),
        (PACKED + b"\0\0\0", "text/html", b"<p>hello</p>" * 10),
        ("Grüße".encode("iso-8859-1"), "text/html", "Grüße".encode("iso-8859-1")),
    ],
)
def test_gzip_of_text_is_detected_by_content(body: bytes, mime: str | None, expected: bytes) -> None:
    """Codings that headers do not tell are undone where there must be one; other files that are gzip stay so."""
    problems = Problems()
    with decompress_gzip_text(BytesIO(body), mime, PLACE, 1 << 20, problems) as found:
        assert found.read() == expected
    assert problems.counts == {}


def test_truncated_gzip_is_decoded_as_far_as_it_goes() -> None:
    """Half a page is better than none, and is counted."""
    text = b"".join(b"%d\n" % number for number in range(50_000))
    problems = Problems()
    with decompress_gzip_text(BytesIO(gzip.compress(text)[:-20]), "text/html", PLACE, 1 << 20, problems) as found:
        body = found.read()
    assert text.startswith(body)
    assert len(body) > len(text) // 2
    assert problems.counts == {"cut-gzip": 1}


def test_bomb_is_rejected() -> None:
    """What unpacks to more than the limit is not unpacked to the end."""
    with pytest.raises(FailedError) as failed:
        decompress_gzip_text(BytesIO(gzip.compress(b"\0" * 10_000_000)), "text/html", PLACE, 1 << 20, Problems())
    assert failed.value.kind == "too-large"
