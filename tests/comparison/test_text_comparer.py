"""Text similarity of two versions of a resource, in all formats."""

import pytest
from study.lost import bodies

from tests.comparison.memory_sites import MemorySite, resource
from unlost.comparison import ResourceBody, SiteResource, TextComparer, TextSimilarity, compare_sites
from unlost.comparison import compare as glue

WORDS = " ".join(f"word{number}" for number in range(100))
OTHER = " ".join(f"other{number}" for number in range(100))
HALF = " ".join(f"word{number}" for number in range(50)) + " " + " ".join(f"new{number}" for number in range(50))


def rtf(text: str) -> bytes:
    """Return a small RTF document."""
    return b"{\\rtf1\\ansi " + text.encode() + b"}"


def pdf(text: str) -> bytes:
    """Return a small PDF with ten words a line."""
    words = text.split()
    lines = [" ".join(words[at : at + 10]) for at in range(0, len(words), 10)]
    return bodies.pdf_document(lines)


def similarity(
    first: bytes, first_mime: str | None, second: bytes, second_mime: str | None, end: str = ""
) -> TextSimilarity:
    """Return the similarity of two bodies."""
    one = resource(f"a.example/x{end}", first, first_mime)
    other = resource(f"a.example/x{end}", second, second_mime)
    with TextComparer(MemorySite([one]), MemorySite([other])) as texts:
        return texts.similarity(one, other)


def test_markup_is_ignored() -> None:
    """The same words in other tags are the same text."""
    found = similarity(f"<p>{WORDS}".encode(), "text/html", f"<body><b>{WORDS}</b>".encode(), "text/html")
    assert found == TextSimilarity(1.0)


def test_charset_is_ignored() -> None:
    """The same words in another charset are the same text."""
    text = " ".join(f"wört{number}" for number in range(50))
    first = f'<meta charset="iso-8859-1"><p>{text}'.encode("latin-1")
    assert similarity(first, "text/html", f'<meta charset="utf-8"><p>{text}'.encode(), "text/html") == TextSimilarity(
        1.0
    )


def test_similarity_is_the_jaccard_index_of_shingles() -> None:
    """41 common of 141."""
    found = similarity(WORDS.encode(), "text/plain", HALF.encode(), "text/plain")
    assert found.share == pytest.approx(41 / 141)


@pytest.mark.parametrize(("text", "is_alike"), [(WORDS, True), (OTHER, False)], ids=["same words", "other words"])
def test_documents_are_compared_with_html(text: str, is_alike: bool) -> None:
    """A PDF or RTF document with the HTML that an archive made of it."""
    page = f"<html><p>{WORDS}</p></html>".encode()
    for body, mime in ((pdf(text), "application/pdf"), (rtf(text), "application/rtf")):
        found = similarity(body, mime, page, "text/html")
        assert found.share is not None
        assert (found.share >= 0.75) is is_alike


def test_document_is_recognised_by_its_extension() -> None:
    """Without a useful media type."""
    one = resource("a.example/x.pdf", pdf(WORDS), "application/octet-stream")
    other = resource("a.example/x.pdf", pdf(HALF), "application/octet-stream")
    with TextComparer(MemorySite([one]), MemorySite([other])) as texts:
        found = compare_sites(MemorySite([one]), MemorySite([other]), texts.similarity)
    assert found.changed_texts == 1
    assert found.unread == {}


@pytest.mark.parametrize(
    ("body", "mime", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png", "no-text"),
        (b"unreadable", "text/html", "unreadable"),
        (b"%PDF-1.4 and then nothing", "application/pdf", "damaged"),
    ],
)
def test_bodies_without_text_have_a_reason(body: bytes, mime: str, reason: str) -> None:
    """In either version."""
    assert similarity(WORDS.encode(), "text/plain", body, mime) == TextSimilarity(None, reason)
    assert similarity(body, mime, WORDS.encode(), "text/plain") == TextSimilarity(None, reason)


def test_texts_without_words_are_not_compared() -> None:
    """One with and one without words have similarity 0."""
    assert similarity(b"<img src=a>", "text/html", b"<img src=b>", "text/html") == TextSimilarity(None, "no-words")
    assert similarity(b"<p>--- ***", "text/html", b"<p>...", "text/html") == TextSimilarity(None, "no-words")
    assert similarity(b"<img src=a>", "text/html", WORDS.encode(), "text/html") == TextSimilarity(0.0)


def test_too_large_body_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body larger than declared is not used."""
    monkeypatch.setattr(glue, "_MAX_BODY_BYTES", 100)
    one = resource("a.example/x", b"word " * 100, "text/plain")
    other = resource("a.example/x", b"word", "text/plain")

    class Site(MemorySite):
        def read_body(self, resource: SiteResource, most: int) -> ResourceBody:
            raise AssertionError(f"nobody should read {most} bytes of {resource.name}")

    with TextComparer(Site([one]), MemorySite([other])) as texts:
        assert texts.similarity(one, other) == TextSimilarity(None, "too-big")
    lying = type(one)(one.name, one.uri, None, None, one.mime, one.digest, 5, None, one.location)
    with TextComparer(MemorySite([lying]), MemorySite([other])) as texts:
        assert texts.similarity(lying, other) == TextSimilarity(None, "too-big")


def test_concurrent_pairs_get_their_own_results() -> None:
    """Pages and documents, by several threads and processes."""
    names = [f"a.example/{number:03d}" for number in range(60)]
    forms = (("text/html", str.encode), ("application/rtf", rtf), ("application/pdf", pdf))
    original, recovered = [], []
    for number, name in enumerate(names):
        mime, made = forms[number % 3]
        original.append(resource(name, made(WORDS), mime))
        recovered.append(resource(name, made(WORDS + " end" if number % 2 else OTHER), mime))
    first, second = MemorySite(original), MemorySite(recovered)
    with TextComparer(first, second) as texts:
        found = compare_sites(first, second, texts.similarity)
    assert [each.similar for each in found.resources()] == [bool(number % 2) for number in range(60)]
