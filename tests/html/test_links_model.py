"""Link extraction agrees with the Python models on generated pages, style sheets and srcset values."""

import string

from hypothesis import example, given
from hypothesis import strategies as st

from tests.models import pages as model
from unlost import _core
from unlost.html import extract_links

BASE = "http://h.example/d/p.html"
TOKENS = st.lists(st.sampled_from(["a", "b.png", ",", " ", "\n", "\t", "(", ")", "1x", "2.5w", "é", "/", "\u00a0"]))


@given(TOKENS.map("".join))
@example("a (b, c")
@example("a,, b")
@example("a )(,), b")
def test_srcset_parser_agrees_with_model(value: str) -> None:
    """The spans are the URLs found by the algorithm of the HTML standard."""
    data = value.encode()
    assert [data[start:end].decode() for start, end in _core.srcset_urls(value)] == model.srcset(value)


@given(st.lists(st.sampled_from(["0", "5", ".", ";", ",", " ", "url", "URL", "=", "'", '"', "x", "é"])).map("".join))
@example("0; url = 'x\"y' z")
@example("5 url=x")
@example(";url=x")
def test_refresh_parser_agrees_with_model(content: str) -> None:
    """The span is the URL found by a regular expression."""
    span = _core.refresh_url(content)
    assert (content.encode()[slice(*span)].decode() if span else None) == model.refresh(content)


NAME = st.text("abcxyz019-_/.", min_size=1, max_size=8)
ESCAPED = st.text("xyz/.()'\" é&", max_size=8).map(lambda text: "".join(rf"\{c}" if c in "()'\" " else c for c in text))
CSS_PARTS = st.one_of(
    NAME.map(lambda name: f"url({name})"),
    ESCAPED.map(lambda text: f"url({text})"),
    ESCAPED.map(lambda text: f'url( "{text}" )'),
    ESCAPED.map(lambda text: f"UrL('{text}')"),
    ESCAPED.map(lambda text: f"content: '{text}'"),
    NAME.map(lambda name: f"/* url({name}) ' */"),
    NAME.map(lambda name: f"@import '{name}'"),
    NAME.map(lambda name: f'@import "{name}"'),
    st.sampled_from(["a { b: c }", "color: red", "@media print", "1px", "é", "u r l", "!important"]),
)


@given(st.lists(CSS_PARTS).map("; ".join))
def test_css_url_parser_agrees_with_model(text: str) -> None:
    """The URLs are those found by a regular expression, at the reported positions."""
    actual = _core.css_urls(text)
    assert [value for _, _, value in actual] == model.css(text)
    data = text.encode()
    for start, end, value in actual:
        token = data[start:end].decode()
        assert token[0] in "'\"uU"
        assert value in token.replace("\\", "") or "\\" in value


# Python and browsers disagree about empty path segments.
WORD = st.text("abcxyz019-_", min_size=1, max_size=8)
REFERENCES = st.one_of(
    WORD,
    st.sampled_from(
        [
            "../x",
            "/x",
            "//o.example/x",
            "?q",
            "x?y=1&amp;z",
            "#f",
            "x#f",
            "http://o.example/",
            "mailto:x",
            " x ",
            "./",
            "",
        ]
    ),
)
QUOTES = st.sampled_from("'\"")
TAGS = st.one_of(
    st.tuples(st.sampled_from(sorted(model.ATTRIBUTES)), REFERENCES, QUOTES, st.booleans()).map(
        lambda drawn: (
            f"<{drawn[0][0].upper() if drawn[3] else drawn[0][0]} class=c {drawn[0][1]}={drawn[2]}{drawn[1]}{drawn[2]}>"
            + ("</script>" if drawn[0][0] == "script" else "</iframe>" if drawn[0][0] == "iframe" else "")
        )
    ),
    st.lists(st.tuples(WORD, st.sampled_from([" 1x", " 2w", ""]))).map(
        lambda drawn: f"<img srcset='{', '.join(name + size for name, size in drawn)}'>"
    ),
    st.tuples(
        st.sampled_from(model.LAZY),
        REFERENCES | st.sampled_from(["a.png", "s/a", "red", "text/css", "1/2", "url(a.png)", "url( b.png ), url(c)"]),
    ).map(lambda drawn: f"<div {drawn[0]}='{drawn[1]}'>"),
    st.lists(WORD).map(lambda drawn: f"<img data-lazy-srcset='{', '.join(drawn)}'>"),
    REFERENCES.map(lambda reference: f"<!-- <a href='{reference}'> -->"),
    st.text(string.ascii_letters + " &;", max_size=20),
    st.sampled_from(["<p>", "</p>", "<br/>", "</td>", "<b title='>'>", "<base href='/b/'>", "<base href='c/'>"]),
)


@given(st.lists(TAGS).map("".join))
@example("<a class=c href='x'><base href='/b/'><base href='/c/'>")
def test_links_of_page_agree_with_model(text: str) -> None:
    """Links of a well-formed page equal those of Python's parser and urljoin."""
    actual = [(link.uri, link.kind.value) for link in extract_links(text.encode(), "text/html", BASE)]
    assert actual == model.page(text, BASE)


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "text/html", "text/css", "image/svg+xml", "text/xml"]),
    st.text(max_size=20),
)
@example(b"<a href='\xf0\x9f", "text/html", "utf-8")
@example(b"\x1f\x8b\x08", None, "")
def test_links_of_arbitrary_bytes_are_valid(body: bytes, mime: str | None, charset: str) -> None:
    """Any bytes yield unique absolute web URLs without fragments."""
    for start in (b"", b"<urlset><loc>", b"<a href=", b"\xff\xfe", b"<svg><style>"):
        actual = extract_links(start + body, mime, BASE, charset)
        assert all(link.uri.startswith(("http://", "https://")) and "#" not in link.uri for link in actual)
        assert len(set(actual)) == len(actual)
