"""Text extraction agrees with Python's parsers on generated pages and XML."""

import html
import string

from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import text as model
from unlost.html import extract_text

BASE = "http://h.example/"


def text_of(body: str, mime: str) -> str:
    """Return the text of a body."""
    read = extract_text(body.encode(), mime, BASE)
    assert read is not None
    assert not read.cut
    return read.text


WORDS = st.text(string.ascii_letters + " \n\t\r\fé日\u00a0.;#", max_size=12)
REFERENCES = st.sampled_from(
    ["&amp;", "&lt;", "&#233;", "&#x41;", "&eacute;", "&notin;", "&#32;", "&nbsp;", "& ", "&#10;"]
)
ATTRIBUTES = st.sampled_from(["", " a", " a=b", " a='>'", ' a="<p>"', " a = 'b' c", "\na=1\t", " a='&amp;'"])
CONTAINERS = sorted(
    model.BREAKS - {"title", "br", "hr"} | model.BLANKS - {"input", "textarea"} | {"b", "span", "a", "my-own"}
)
RAW = st.tuples(
    st.sampled_from(["script", "style"]), st.sampled_from(["", "x", "a < b && c", "<!-- x -->", "'<p>x</p>'"])
)


def make_html_element(drawn: tuple[str, str, str]) -> str:
    """Return an HTML element."""
    tag, attributes, content = drawn
    return f"<{tag}{attributes}>{content}</{tag.upper()}>"


LEAVES = st.one_of(
    WORDS,
    REFERENCES,
    WORDS.map(lambda words: f"<!-- {words} <p>x</p> -->"),
    RAW.map(lambda drawn: f"<{drawn[0]}>{drawn[1]}</{drawn[0]}>"),
    st.tuples(st.just("title"), ATTRIBUTES, WORDS).map(make_html_element),
    st.sampled_from(["<br>", "<br/>", "<hr>", "<p>", "</p>", "<TD>", "<li>", "</b>", "<img alt='x'>"]),
)
TREES = st.recursive(
    st.lists(LEAVES, max_size=5).map("".join),
    lambda inner: st.lists(
        st.tuples(st.sampled_from(CONTAINERS + sorted(model.HIDES - {"script", "style"})), ATTRIBUTES, inner).map(
            make_html_element
        )
        | LEAVES,
        max_size=5,
    ).map("".join),
    max_leaves=20,
)


@given(TREES)
@example("a<video> <p>x</p></video>b")
@example("<p>a<template>x<template>x</template></template> b")
def test_text_of_page_agrees_with_model(page: str) -> None:
    """The text of a well-formed page equals that of Python's parser."""
    assert text_of("<html>" + page, "text/html") == model.page(page)


def make_xml_element(drawn: tuple[str, list[str]]) -> str:
    """Return an XML element."""
    name, content = drawn
    return f"<{name}>{''.join(content)}</{name}>" if content else f"<{name}/>"


SAFE = st.text(string.ascii_letters + " \n\té日<>&'\"", max_size=10)
XML_LEAVES = st.one_of(
    SAFE.map(lambda words: html.escape(words).replace("&#x27;", "&apos;")),
    SAFE.map(lambda words: f"<![CDATA[{words}]]>"),
    WORDS.map(lambda words: f"<!--{words}--><?x {words}?>".replace("\f", "")),
    st.sampled_from(["&#233;", "&#xe9;", "&#32;"]),
)
XML_TREES = st.recursive(
    XML_LEAVES,
    lambda inner: st.tuples(st.sampled_from(["a", "b.c", "script", "video"]), st.lists(inner, max_size=4)).map(
        make_xml_element
    ),
    max_leaves=8,
)


@given(st.lists(XML_TREES, max_size=5).map("".join))
def test_text_of_xml_agrees_with_model(content: str) -> None:
    """The text of well-formed XML equals that of Python's parser, with a break at every tag."""
    document = f"<?xml version='1.0'?><root>{content}</root>"
    # Texts separated by a comment are one text; Python's parser joins them, too.
    assert text_of(document, "application/xml") == model.xml(document)


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "text/html", "text/plain", "image/svg+xml", "text/xml", "image/gif"]),
    st.text(max_size=20),
)
@example(b"&#x", "text/html", "utf-8")
@example(b"\x1f\x8b\x08", None, "")
@example(b"\x01", "text/html", "")
def test_text_of_arbitrary_bytes_has_normalized_white_space(body: bytes, mime: str | None, charset: str) -> None:
    """Any bytes yield a result; the text of a page has no redundant white space."""
    for start in (b"", b"<urlset><loc>", b"<p><", b"\xff\xfe", b"<svg><style>", b"<rss><description><![CDATA["):
        read = extract_text(start + body, mime, BASE, charset)
        # The model marks breaks by a character that may be in the bytes.
        if read is not None and mime == "text/html" and model.BREAK not in read.text:
            assert read.text == model.collapse_white_space(read.text.replace("\n", model.BREAK))
