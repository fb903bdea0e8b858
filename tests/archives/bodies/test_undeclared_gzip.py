"""Undeclared gzip is decoded where the content requires it."""

import gzip
from io import BytesIO

import pytest

from unlost.archives import decompress_gzip_text
from unlost.errors import FailedError
from unlost.problems import Problems
from unlost.registry import Archive, ArchiveKind

COMPRESSED = gzip.compress(b"<p>hello</p>" * 10)
PLACE = Archive("a", "A", ArchiveKind.WAYBACK)


@pytest.mark.parametrize(
    ("body", "mime", "expected"),
    [
        (COMPRESSED, "text/html", b"<p>hello</p>" * 10),
        (COMPRESSED, "application/xhtml+xml", b"<p>hello</p>" * 10),
        (COMPRESSED, "application/json", b"<p>hello</p>" * 10),
        (COMPRESSED, "application/octet-stream", COMPRESSED),
        (COMPRESSED, "application/gzip", COMPRESSED),
        (COMPRESSED, None, COMPRESSED),
        (b"plain", "text/html", b"plain"),
        (b"", "text/html", b""),
        (b"\x1f\x8b", "text/html", b"\x1f\x8b"),
        (b"\x1f\x8b\x08 is no gzip at all", "text/html", b"\x1f\x8b\x08 is no gzip at all"),
        (gzip.compress(COMPRESSED), "text/html", b"<p>hello</p>" * 10),
        (COMPRESSED + COMPRESSED, "text/html", b"<p>hello</p>" * 20),
        (COMPRESSED + b"\0\0\0", "text/html", b"<p>hello</p>" * 10),
        ("Grüße".encode("iso-8859-1"), "text/html", "Grüße".encode("iso-8859-1")),
    ],
)
def test_gzip_of_text_is_detected_by_content(body: bytes, mime: str | None, expected: bytes) -> None:
    """Undeclared codings of text are decoded; other gzip files are unchanged."""
    problems = Problems()
    with decompress_gzip_text(BytesIO(body), mime, PLACE, 1 << 20, problems) as results:
        assert results.read() == expected
    assert problems.counts == {}


def test_truncated_gzip_is_decoded_as_far_as_it_goes() -> None:
    """The available part is returned and counted."""
    text = b"".join(b"%d\n" % number for number in range(50_000))
    problems = Problems()
    with decompress_gzip_text(BytesIO(gzip.compress(text)[:-20]), "text/html", PLACE, 1 << 20, problems) as results:
        body = results.read()
    assert text.startswith(body)
    assert len(body) > len(text) // 2
    assert problems.counts == {"cut-gzip": 1}


def test_bomb_is_rejected() -> None:
    """Decoding stops at the limit."""
    with pytest.raises(FailedError) as failed:
        decompress_gzip_text(BytesIO(gzip.compress(b"\0" * 10_000_000)), "text/html", PLACE, 1 << 20, Problems())
    assert failed.value.kind == "too-large"
