"""Text of pages and other formats."""

import gzip

import pytest

from unlost import _core
from unlost.html import ExtractedText, extract_text

BASE = "http://h.example/d/p"


def text_of(
    body: str | bytes, mime: str | None = "text/html", base: str = BASE, charset: str | None = None
) -> str | None:
    """Return the text of a body, which must not be cut."""
    read = extract_text(body.encode() if isinstance(body, str) else body, mime, base, charset)
    assert read is None or not read.cut
    return None if read is None else read.text


PAGES = {
    "<b>un</b>lost <a href=x>f</a>ound <span>s</span>": "unlost found s",
    "<p>a</p><p>b<p>c<div>d</div>e": "a\nb\nc\nd\ne",
    "a<br>b<br/>c<hr>d": "a\nb\nc\nd",
    "<table><tr><td>a</td><td>b</td></tr><tr><th>c<th>d</table>": "a b\nc d",
    "<ul><li>a<li>b</ul><dl><dt>c<dd>d</dl>": "a\nb\nc\nd",
    "<select><option>a<option>b</select><button>c</button><button>d</button>": "a\nb c d",
    "<html><head><title>T &amp; t</title><meta name=x content=y></head><body>b": "T & t\nb",
    "  a \n\t b\r\nc\f ": "a b c",
    "a<!-- x -->b<!-->c<!--->d<!-- x --!>e<!-- -- > -> x -->f": "abcdef",
    "a<!-- x --><p>b<!--><p>c<!---><p>d<!-- x --!><p>e": "a\nb\nc\nd\ne",
    "a<!--!><p>x-->b<!-- <p>x --><i>c</i><!-- -- ><p> -->d": "abcd",
    "a<!doctype html>b<!x>c<?x y?>d</ x>e</>f": "abcdef",
    "a<script>x</script>b<style>x</style>c<template>x<p>x</p></template>d": "abcd",
    "a<script>'<p>x</p>'<!-- <script>x</script> --></script>b": "ab",
    "a <noscript>x</noscript> <iframe>x</iframe> <noframes>x</noframes> <noembed>x</noembed> b": "a b",
    "a<video>x</video>b<audio>x</audio>c<canvas>x<p>x</p></canvas>d<datalist><option>x</datalist>e": "abcde",
    "<template>x<template>x</template>x</template>a": "a",
    "a<video>b<p>c": "ab\nc",
    "<div>a<video></div>b<video>x</video>c": "a\nbc",
    "a <video>x </video>b<canvas><p>x</p></canvas>c": "a bc",
    "a</video>b</template>c": "abc",
    "<textarea><p>a</textarea><xmp><b>c&amp;</xmp><plaintext><d>&amp;": "<p>a\n<b>c&amp;\n<d>&amp;",
    "&lt;p&gt; &eacute;&#233;&#xe9; &copy &notit; &#128;": "<p> ééé © ¬it; €",
    "&nosuch; & &amp;amp; a&nbsp;b": "&nosuch; & &amp; a\u00a0b",
    "1 < 2 <3 << a<b>c</b>": "1 < 2 <3 << ac",
    "<p title='>x'>a<p title=\"<x>\">b<p title=x>c<p a'>d<p =x>e": "a\nb\nc\nd\ne",
    "<P>a<DIV>b</DIV><SCRIPT>x</SCRIPT>": "a\nb",
    "un<my-element>lo</my-element>st un<wbr>lost": "unlost unlost",
    "<svg><title>a</title><desc>x</desc><text>b</text><text>c<tspan>d</tspan></text></svg>e": "a\nb\ncd\ne",
    "<svg><style>x</style><script>x</script><text>b</text></svg>": "b",
    "<svg><style/><text>a</text><![CDATA[<b>&amp;]]><metadata/><text>c</text></svg>": "a\n<b>&amp;\nc",
    "un\0lost": "unlost",
    "<p>a</p": "a",
    "a<b title='": "a",
    "": "",
    "<ruby>base<rt>gloss</rt></ruby>": "base gloss",
    "<frameset><frame src=x><noframes>x</noframes></frameset>": "",
    "<div hidden>a</div><p style='display:none'>b": "a\nb",
    "<br>".join("abc"): "a\nb\nc",
}


@pytest.mark.parametrize(("page", "expected"), PAGES.items(), ids=PAGES)
def test_text_of_page_is_extracted(page: str, expected: str) -> None:
    """The text that a reader sees is extracted."""
    assert text_of(page) == expected


def test_character_reference_in_long_text_is_decoded() -> None:
    """References are decoded at any position of the parser's buffer."""
    for length in (1_000, 1_022, 1_023, 1_024, 5_000):
        assert text_of("é" * length + "&amp;" + "é" * length) == "é" * length + "&" + "é" * length
    # After a stray bracket, the parser emits text in parts.
    for length in range(1_000, 1_030):
        assert text_of(f"a < {'e' * length}&amp;b") == f"a < {'e' * length}&b"


XML = {
    "<?xml version='1.0'?><x><b>1</b><c>2</c>3<d/>4</x>": "1\n2\n3\n4",
    "<?xml version='1.0'?><x>x&amp;y&#233;<![CDATA[<z>&amp;]]></x>": "x&yé<z>&amp;",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e 'x'>]><x><!-- x --><?x y?>b&e;</x>": "b&e;",
    "<urlset><url><loc>http://h.example/</loc><lastmod>2008</lastmod></url></urlset>": "http://h.example/\n2008",
    "<rss><title>a &lt; b</title><description>&lt;p&gt;c&lt;b&gt;d&lt;/b&gt;&amp;</description></rss>": "a < b\ncd&",
    "<rss><description><![CDATA[<script>x</script>a<br>b]]></description><link>c</link></rss>": "a\nb\nc",
    "<rss><description>&lt;video&gt;a</description><description>b&lt;/video&gt;</description></rss>": "a\nb",
    "<feed><title type='html'>a&lt;b&gt;b&lt;/b&gt;</title><title type='text'>&lt;b&gt;</title></feed>": "ab\n<b>",
    "<feed><content type='xhtml'><div>a<b>b</b><p>c</p></div></content><id>d</id><id>e</id></feed>": "ab\nc\nd\ne",
    "<feed><content type='xhtml'><script>x&lt;</script>a</content></feed>": "a",
}


@pytest.mark.parametrize(("document", "expected"), XML.items(), ids=XML)
def test_text_of_xml_is_extracted(document: str, expected: str) -> None:
    """Elements separate words; HTML in feeds is parsed as HTML."""
    assert text_of(document, "text/xml") == expected
    assert text_of(document, None) == expected
    assert text_of(document, "application/octet-stream") == expected


def test_text_of_xhtml_and_svg_is_extracted() -> None:
    """They are parsed as XML with the entities and elements of HTML."""
    page = "<html><title>a</title>un<b>lost</b><br/>&eacute;<![CDATA[<i>]]><script>x <p></script><p>b</p></html>"
    assert text_of(page, "application/xhtml+xml") == "a\nunlost\né<i>\nb"
    drawing = (
        "<svg:svg><svg:style>x</svg:style><svg:text>a</svg:text><svg:text>b</svg:text><svg:desc>x</svg:desc></svg:svg>"
    )
    assert text_of(drawing, "image/svg+xml") == "a\nb"
    assert text_of("<svg><video/><text>a</text></svg>", "image/svg+xml") == "a"


@pytest.mark.parametrize(
    "mime",
    [
        "text/plain",
        "text/css",
        "text/javascript",
        "application/javascript",
        "application/x-javascript",
        "application/json; charset=utf-8",
        "application/ld+json",
        "text/csv",
        "text/x-anything",
        "TEXT/PLAIN",
        "unk",
        "application/octet-stream",
        "",
        None,
    ],
)
def test_plain_text_is_unchanged(mime: str | None) -> None:
    """Text without markup retains its white space."""
    body = "  a <b> &amp;\r\n\r\n{é}\n"
    assert text_of(body, mime) == body


@pytest.mark.parametrize(
    ("body", "mime"),
    [
        (b"GIF89a\x01\0", "image/gif"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        (b"\xff\xd8\xff\xe0", None),
        (b"%PDF-1.4\n", "application/pdf"),
        (b"%PDF-1.4\n", "text/html"),
        (b"%PDF-1.4\n", "text/plain"),
        (b"\x89PNG\r\n\x1a\n\0\0", "text/html"),
        (b"PK\x03\x04\x14\0", "text/plain"),
        (b"RIFF\x10\0\0\0WEBP", None),
        (b"a\0b", "text/plain"),
        (bytes(range(256)), "application/octet-stream"),
        (b"\1\2\3\4", None),
        (b"text", "image/jpeg"),
        (b"text", "application/pdf"),
        (b"text", "application/zip"),
        (b"text", "video/mp4"),
    ],
)
def test_binary_content_has_no_text(body: bytes, mime: str | None) -> None:
    """Images, PDF files and other binary data have no text for any media type."""
    assert extract_text(body, mime, BASE) is None


def test_text_resembling_binary_is_extracted() -> None:
    """Text that begins like a binary format or has control characters is text."""
    for body in ("RIFF is a format", "ID3 tags", "hello\r\n\x1a", "n\x08na\x08am\x08me\x08e", "\x1b[1mhello"):
        assert text_of(body, "text/plain") == body


def test_content_with_wrong_media_type_is_detected() -> None:
    """HTML and feeds are detected by their content."""
    for mime in ("image/gif", "text/plain", "application/json", "application/pdf", None):
        assert text_of("<!DOCTYPE html><title>Not</title>found", mime) == "Not\nfound"
    assert text_of("<?xml version='1.0'?><rss><link>a</link>b</rss>") == "a\nb"
    assert text_of("<html>x", "text/plain", "http://h.example/robots.txt") == "x"


def test_text_file_without_media_type_is_detected_by_name() -> None:
    """Style sheets, robots.txt and scripts are plain text."""
    for name in ("a.css", "robots.txt", "sitemap.txt", "a.js"):
        assert text_of("a { b }", None, f"http://h.example/{name}") == "a { b }"


def test_gzipped_body_is_decompressed_once() -> None:
    """Nested gzip has no text."""
    assert text_of(gzip.compress(b"<urlset><loc>a</loc></urlset>"), "application/gzip", f"{BASE}.xml.gz") == "a"
    assert text_of(gzip.compress(b"a <b>"), "application/x-gzip", f"{BASE}.txt.gz") == "a <b>"
    assert extract_text(gzip.compress(gzip.compress(b"a")), None, BASE) is None
    assert extract_text(gzip.compress(b"GIF89a"), None, BASE) is None


def test_text_of_cut_body_is_marked() -> None:
    """Bodies above 32 MiB and damaged gzip are marked as cut."""
    body = b"a<p>" + b" " * (_core.MAX_PAGE_BYTES - 5) + b"b"
    assert extract_text(body, "text/html", BASE) == ExtractedText("a\nb", False)
    assert extract_text(body + b"c", "text/html", BASE) == ExtractedText("a\nb", True)
    assert extract_text(gzip.compress(b"a" * 100)[:-9], "text/plain", BASE) == ExtractedText("a" * 100, True)


def test_invalid_type_url_and_charset_are_ignored() -> None:
    """Invalid metadata is treated as missing."""
    assert text_of("<b>aé", "text/html\udce9", "\udce9", "no such") == "aé"
    assert text_of("aé", "image\udce9") is None
    assert text_of("aé", "text/html; charset=\udce9", "::\udce9", "\udce9") == "aé"
