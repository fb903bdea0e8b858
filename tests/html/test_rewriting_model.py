"""Rewriting agrees with the Python models on generated pages in many charsets."""

import re
from typing import Unpack

from hypothesis import example, given
from hypothesis import strategies as st

from tests.html.rewrite_options import RewriteOptions
from tests.models import pages as pages_model
from tests.models import rewriting as model
from tests.models import scripts as scripts_model
from unlost.html import (
    Link,
    LinkKind,
    RewriteResult,
    extract_links,
    find_script_urls,
    find_urls_in_script,
    rewrite_links,
    scan_links,
)

BASE = "http://h.example/d/p.html"
MIMES = st.sampled_from([None, "text/html", "text/css", "image/svg+xml", "application/xhtml+xml", "text/xml"])
TAG_SOUP = st.lists(
    st.sampled_from(
        [
            "<a",
            "href=",
            "<a/href='",
            "<A",
            'HREF="',
            "<img",
            "src=",
            'srcset="',
            "style='",
            "<style>",
            "</style>",
            "<style/>",
            "<script>",
            "</script>",
            "<!--",
            "-->",
            "--!>",
            "<!-->",
            "<![CDATA[",
            "]]>",
            "<svg>",
            "</svg>",
            "<math>",
            "<mi>",
            "</mi>",
            "<title>",
            "</title>",
            "<desc>",
            "<textarea>",
            "</textarea>",
            "<noscript>",
            "</noscript>",
            "<iframe",
            "srcdoc='",
            "</iframe>",
            "<base",
            "href=/b/>",
            "<p>",
            "</p>",
            "<font",
            "color=x>",
            "<plaintext>",
            "<?x?>",
            "<!doctype",
            ">",
            ">",
            "/",
            "'",
            '"',
            "'",
            '"',
            "=",
            "&",
            "&amp;",
            "&#38;",
            "&quot;",
            "&#34",
            "&#39;",
            "&fjlig;",
            "&notin",
            "&#0;",
            "x",
            "y.png",
            "u",
            "v,",
            "w#f",
            "#g",
            "1x",
            "2x",
            "(",
            ")",
            ",",
            "url(",
            "url('",
            'url("',
            "@import",
            "\\",
            "\\29",
            ";",
            "{",
            "}",
            "/*",
            "*/",
            "javascript:",
            "http://o.example/",
            "//o.example/",
            "<meta/http-equiv=refresh",
            "content='0;url=",
            "5;x",
            "<object/codebase=/c/",
            "data=",
            "archive='a,b",
            "<form",
            "action=z>",
            "integrity=x",
            "<link/rel=stylesheet",
            "href=",
            "é",
            "ソ",
        ]
    ).map(lambda piece: piece + " " if piece[:2] in {"<A", "<a"} else piece)
    | st.sampled_from([" ", "\n", "\0", "\t"]),
    max_size=40,
).map("".join)
CHARSETS = {
    "utf-8": "é日本𝄞",
    "windows-1252": "éß€",
    "windows-1251": "жЯё",
    "iso-8859-7": "αΩ",
    "koi8-r": "жЯ",
    "windows-874": "กขฃ",
    "shift_jis": "ソ表能ｱ",  # some trail bytes are backslashes
    "euc-jp": "ソ表能",
    "gbk": "佈丂俓",
    "gb18030": "佈丂é𝄞",
    "big5": "功許蓋",
    "euc-kr": "한글똠",
}
# Python uses other names for these charsets.
CODECS = {"windows-874": "cp874", "euc-kr": "cp949", "shift_jis": "cp932"}


def rewrite_without_replacements(
    body: bytes, mime: str | None, charset: str | None = None, **options: Unpack[RewriteOptions]
) -> tuple[RewriteResult, list[Link]]:
    """Rewrite without replacements, and return the callback's links."""
    requested: list[Link] = []
    return rewrite_links(
        body, mime, BASE, charset, lambda uri, use: requested.append(Link(uri, use)), **options
    ), requested


@given(
    st.binary(max_size=300) | TAG_SOUP.map(str.encode),
    MIMES,
    st.sampled_from([None, *CHARSETS, "utf-16", "iso-2022-jp"]),
)
@example(b"\x1f\x8b\x08", None, None)
@example(b"<a href='\xf0\x9f", "text/html", "utf-8")
@example(b"\xef\xbb\xbf<a href=x>", "text/html", "shift_jis")
def test_rewriting_without_replacements_changes_nothing(body: bytes, mime: str | None, charset: str | None) -> None:
    """Any bytes are unchanged, and the callback receives the extracted links."""
    for start in (b"", b"<a href=", b"\xff\xfe", b"<svg><style>", b"<html>\x00"):
        result, requested = rewrite_without_replacements(start + body, mime, charset)
        assert result.body is start + body or result.body == start + body
        assert (result.changed, result.transcoded_from) == (0, None)
        assert not result.is_truncated or body.startswith(b"\x1f\x8b")
        if result.charset is not None:
            assert requested == extract_links(start + body, mime, BASE, charset)


@given(
    TAG_SOUP,
    st.sampled_from(["text/html", "text/css", "image/svg+xml"]),
    st.sampled_from(["utf-8", "shift_jis", "utf-16"]),
)
@example("<a href='x&amp;y'><img srcset='a&#44; b'>", "text/html", "utf-8")
@example("<iframe srcdoc='<p style=&quot;a:url(&amp;quot;x&amp;quot;)&quot;>'></iframe>", "text/html", "utf-8")
@example("<p style='a:url(x\\29 #\\66 )'>", "text/html", "utf-8")
def test_rewritten_links_are_extracted_again(text: str, mime: str, charset: str) -> None:
    """Unique replacements are extracted with the same kinds, and no others."""
    body = text.encode(charset, "replace")
    new: list[Link] = []

    def replace(_: str, use: LinkKind) -> str:
        new.append(Link(f"http://new.example/{len(new)}?a=b&c='d'(e)", use))
        return new[-1].uri

    result = rewrite_links(body, mime, BASE, charset, replace)
    assert result.skipped == 0
    links = scan_links(result.body, mime, BASE, None if result.transcoded_from else charset).links
    assert [Link(link.uri.replace("%27", "'"), link.kind) for link in links] == new
    assert (result.changed > 0) == bool(new)


NAME = st.text("abcxyz019-_.", min_size=1, max_size=8).filter(lambda name: name.strip("."))
NEW = st.text("abc/.-_%2&;='\"()<>\\,:#?", min_size=1, max_size=12).filter(
    lambda text: text.strip(",") and not text.lower().startswith("url")
)
FILLERS = [
    b"<p>",
    b"text",
    b"<!-- <a href=no> -->",
    b"<script>'<a href=no>'</script>",
    b"\n",
    b"<b title='a=b'>",
    b"</td>",
]
BROKEN = [b"\xff", b"\x81", b"\x8f\xa1", b"\x81\x30", b"\x81\x30\x81"]


@st.composite
def pages(
    draw: st.DrawFn, places: list[model.Place], fillers: list[bytes]
) -> tuple[str, list[model.PlacedLink | bytes]]:
    """Draw a charset and the parts of a page: links with known positions, and content between them."""
    charset = draw(st.sampled_from(sorted(CHARSETS)))
    letters = st.text(CHARSETS[charset], max_size=3)
    planted = st.builds(
        model.PlacedLink,
        st.sampled_from(places),
        st.tuples(st.sampled_from(["", "/", "../", "s/"]), letters, NAME).map("".join),
        st.sampled_from(["", "#top"]) | letters.map(lambda text: f"#{text}x"),
    )
    filler = st.sampled_from(fillers) | letters.map(lambda text: text.encode(CODECS.get(charset, charset)))
    if charset != "utf-8":
        filler |= st.sampled_from(BROKEN).map(lambda raw: raw + b"<" + fillers[0][1:])
    return charset, draw(st.lists(planted | filler, max_size=12))


def assert_agrees_with_model(
    mime: str, charset: str, parts: list[model.PlacedLink | bytes], replacements: list[str | None]
) -> None:
    """Rewrite a page with these replacements and compare it with the model's."""
    new: dict[tuple[str, str], str] = {}
    requested: list[tuple[str, str]] = []

    def replace(uri: str, use: LinkKind) -> str | None:
        replacement = replacements[len(requested) % len(replacements)]
        requested.append((uri, use.value))
        if replacement is not None:
            new[uri, use.value] = replacement
        return replacement

    codec = CODECS.get(charset, charset)
    body = model.page(parts, codec, {}, BASE)
    result = rewrite_links(body, mime, BASE, charset, replace)
    planted = [part for part in parts if isinstance(part, model.PlacedLink)]
    assert requested == list(dict.fromkeys((part.uri(BASE), part.place.use) for part in planted))
    assert result.body == model.page(parts, codec, new, BASE)
    assert result.changed == sum((part.uri(BASE), part.place.use) in new for part in planted)
    assert (result.skipped, result.transcoded_from) == (0, None)


REPLACEMENTS = st.lists(st.none() | NEW, min_size=1, max_size=5)


@given(pages(model.PLACES, FILLERS), REPLACEMENTS)
def test_rewritten_page_agrees_with_model(
    drawn: tuple[str, list[model.PlacedLink | bytes]], replacements: list[str | None]
) -> None:
    """In twelve charsets only replaced links change, also next to invalid bytes."""
    assert_agrees_with_model("text/html", *drawn, replacements)


@given(pages(model.STYLES, [b"a { b: c }", b"/* url(no) */", b"@media print { a { b: c } }", b"\n"]), REPLACEMENTS)
def test_rewritten_style_sheet_agrees_with_model(
    drawn: tuple[str, list[model.PlacedLink | bytes]], replacements: list[str | None]
) -> None:
    """Only replaced URLs of style sheets change."""
    assert_agrees_with_model("text/css", *drawn, replacements)


@given(
    pages(model.DRAWING, [b"<g>", b"text", b"<!-- <use href='no'/> -->", b"<![CDATA[<use href='no'/>]]>"]), REPLACEMENTS
)
def test_rewritten_svg_agrees_with_model(
    drawn: tuple[str, list[model.PlacedLink | bytes]], replacements: list[str | None]
) -> None:
    """Only replaced links of SVG files change."""
    assert_agrees_with_model("image/svg+xml", *drawn, replacements)


@given(
    st.lists(
        st.builds(
            model.PlacedLink,
            st.sampled_from(model.CANDIDATES),
            st.tuples(st.sampled_from(["/", "../", "s/", "http://h.example/"]), st.sampled_from(["a", "x-1", "é"])).map(
                lambda parts: "".join(parts).replace("é", "e") + ".html"
            ),
            st.sampled_from(["", "#top"]),
        )
        | st.sampled_from([*FILLERS, b"<a href='no.html'>", b"<p data-tab=about>", b"\xe9"]),
        max_size=8,
    ),
    REPLACEMENTS,
    st.booleans(),
)
def test_script_candidates_are_replaced(
    parts: list[model.PlacedLink | bytes], replacements: list[str | None], has_base: bool
) -> None:
    """The callback receives each candidate once, and only replaced ones change."""
    base = "http://h.example/b/" if has_base else BASE
    if has_base:
        parts = [b"<base href='/b/'>", *parts]
    new: dict[tuple[str, str], str] = {}
    received: list[str] = []

    def replace(uri: str) -> str | None:
        replacement = replacements[len(received) % len(replacements)]
        received.append(uri)
        if replacement is not None:
            new[uri, "candidate"] = replacement
        return replacement

    body = model.page(parts, "windows-1252", {}, base)
    result = rewrite_links(body, "text/html", BASE, "windows-1252", lambda *_: None, replace_candidate=replace)
    planted = [part for part in parts if isinstance(part, model.PlacedLink)]
    assert received == list(dict.fromkeys(part.uri(base) for part in planted))
    assert result.body == model.page(parts, "windows-1252", new, base)
    assert result.changed == sum((part.uri(base), "candidate") in new for part in planted)


SCRIPT = st.lists(
    st.sampled_from(
        [
            "'",
            '"',
            "`",
            "+",
            "/",
            "\\/",
            "//",
            "http://",
            "https://",
            "HTTP://",
            "o.example",
            "h.example",
            "www.w3.org",
            "a.b",
            ".png",
            "x.html",
            ".php",
            "?",
            "#",
            "folder/",
            "ab",
            "\\",
            "(",
            ")",
            "é",
            ";",
            ",",
            "{}",
            "$",
            "location",
            "location=",
            "location.href = '",
            'location.replace("',
            "= '",
            "hash",
        ]
    )
    | st.sampled_from([" ", "\n"]),
    max_size=30,
).map("".join)


@given(SCRIPT)
@example("'/a.png''/ab/'+'/c.png'")
@example("location='x' ; mylocation='y'; location.assign ( 'z' ); location = 'u' + v; location = 'w' + location.hash")
@example("location == 'x'; location.href='location=\"y\"'; location='a\\'; location='b\n'; location.replace('c').d")
@example("'/a/' '/ab/' '//o.example/ab/' '//o/ab/' '/x//y.png'")
def test_script_urls_agree_with_model(script: str) -> None:
    """Candidates equal those found by regular expressions."""
    expected = [uri for uri in scripts_model.candidates(script, BASE) if is_plain(uri)]
    assert [uri for uri in find_urls_in_script(script.encode(), BASE) if is_plain(uri)] == expected


VALUE = st.lists(
    st.sampled_from(
        ["a", "/", "x.png", "about", "http://", "h.example", "image", "text", ".", "?q", "2", ":", "*", " "]
    ),
    max_size=5,
).map("".join)
CODE = SCRIPT.filter(lambda text: not set(text) & {"é", '"'})
ELEMENTS = st.one_of(
    st.tuples(st.sampled_from(["data-x", "data-href", "DATA-URL", "data-original", "title", "id"]), VALUE).map(
        lambda drawn: f'<p {drawn[0]}="{drawn[1]}">'
    ),
    st.tuples(st.sampled_from(["onclick", "OnLoad", "data-json", "alt"]), CODE).map(
        lambda drawn: f'<b {drawn[0]}="{"[" if drawn[0] == "data-json" else ""}{drawn[1]}">'
    ),
    CODE.map(lambda code: f"<script>{code}</script>"),
    st.sampled_from(["<i>", "'/text.png'", "</p>", "<img data-src=/a.png data-lazy-srcset='/b.png 2x'>"]),
)


@given(st.lists(ELEMENTS, max_size=6).map("".join))
@example('<p data-x="http://">')
@example("<p data-x='/about'><p data-x='text/html'><p data-x='image/x.png'><p data-x=about><p data-x='1/2'>")
@example("<body onload=\"load('a', 'b/x.html')\"><script>'/c/x.html'</script>")
def test_script_urls_of_page_agree_with_model(text: str) -> None:
    """Candidates equal those of Python's parser and regular expressions."""
    expected = [uri for uri in pages_model.script_candidates(text, BASE) if is_plain(uri)]
    links = find_script_urls(text.encode(), "text/html", BASE, is_html=True)
    assert [uri for uri in links if is_plain(uri)] == expected


def is_plain(uri: str) -> bool:
    """Return whether Python and browsers normalise a URL alike."""
    is_simple = re.fullmatch(r"http://[a-z0-9.:/_-]+", uri, re.ASCII) is not None
    return is_simple and "/." not in uri and uri.count("//") == 1 and uri.count(":") == 1
