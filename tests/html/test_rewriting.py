"""Rewriting of links in pages: positions, escaping and options."""

import gzip
from typing import Unpack

import pytest

from tests.html.rewrite_options import RewriteOptions
from unlost.errors import UsageError
from unlost.html import LinkKind, RewriteResult, find_urls_in_script, rewrite_links

BASE = "http://h.example/d/p.html"
FOLDER = "http://h.example/d/"


def rewrite(
    body: str | bytes,
    replacements: dict[str, str],
    mime: str | None = "text/html",
    charset: str | None = None,
    **options: Unpack[RewriteOptions],
) -> RewriteResult:
    """Rewrite a page at BASE; replacements are keyed by URL, relative to its folder."""
    data = body.encode() if isinstance(body, str) else body
    return rewrite_links(
        data, mime, BASE, charset, lambda uri, _: replacements.get(uri.removeprefix(FOLDER)), **options
    )


# Each page before and after `x` is replaced by `y`.
PAGES = {
    "<a href=x>": "<a href=y>",
    "<a href = 'x' >": "<a href = 'y' >",
    '<A HREF="x">': '<A HREF="y">',
    "<a href=' x\n'>": "<a href=' y\n'>",
    "<a href='./a/../x'>": "<a href='y'>",
    "<a href=x#top>": "<a href=y#top>",
    "<a href='x&#35;top'>": "<a href='y&#35;top'>",
    "<a href='&#120;'>": "<a href='y'>",
    "<a href='http://h.example/d/x#é'>": "<a href='y#é'>",
    "<a href=x><a href=z><img src=x>": "<a href=y><a href=z><img src=y>",
    "<img srcset='x 1x, z 2x,x  (a,b) 3x'>": "<img srcset='y 1x, z 2x,y  (a,b) 3x'>",
    "<img srcset='x, z,w 2x, x'>": "<img srcset='y, z,w 2x, y'>",
    "<img data-src=x data-srcset=x>": "<img data-src=y data-srcset=y>",
    "<p style=background:url(x)>": "<p style=background:url(y)>",
    "<p style='background:url(&quot;x&quot;)'>": "<p style='background:url(&quot;y&quot;)'>",
    "<p style='background:url(&#34x&#34)'>": "<p style='background:url(&#34;y&#34)'>",
    r"<style>a { b: url(\78) url( 'x' ) url('\78#z') }</style>": (
        r"<style>a { b: url(y) url( 'y' ) url('y#z') }</style>"
    ),
    "<style>@import 'x' print; @import url(x)</style>": "<style>@import 'y' print; @import url(y)</style>",
    "<style>a { b: url(x": "<style>a { b: url(y",
    "<style>@import 'x": "<style>@import 'y",
    "<meta http-equiv=Refresh content='5;url=x'>": "<meta http-equiv=Refresh content='5;url=y'>",
    "<meta content='0, x' http-equiv=refresh>": "<meta content='0, y' http-equiv=refresh>",
    "<meta http-equiv=refresh content=\"0; URL = 'x' z\">": "<meta http-equiv=refresh content=\"0; URL = 'y' z\">",
    "<meta property=og:image content=x>": "<meta property=og:image content=y>",
    "<svg><use xlink:href='x#part'/><image href=x /></svg>": "<svg><use xlink:href='y#part'/><image href=y /></svg>",
    "<svg><style>a { b: url(x) }</style></svg>": "<svg><style>a { b: url(y) }</style></svg>",
    "<object data=x><param name=src value=x>": "<object data=y><param name=src value=y>",
    "<applet archive='x,z x'>": "<applet archive='y,z y'>",
    "<noscript><a href=x></noscript>": "<noscript><a href=y></noscript>",
    "<iframe srcdoc='<a href=&quot;x&quot;>&amp;<img src=x>'></iframe>": (
        "<iframe srcdoc='<a href=&quot;y&quot;>&amp;<img src=y>'></iframe>"
    ),
    "<template><a href=x></template>": "<template><a href=y></template>",
    "<!-- <a href=x> --><!--><a href=x>": "<!-- <a href=x> --><!--><a href=y>",
    "<script>'<a href=x>'</script><textarea><a href=x></textarea><title><a href=x></title>": (
        "<script>'<a href=x>'</script><textarea><a href=x></textarea><title><a href=x></title>"
    ),
    "<script><!-- <script> </script> <a href=x> --></script><a href=x>": (
        "<script><!-- <script> </script> <a href=x> --></script><a href=y>"
    ),
    "<svg><![CDATA[<a href=x>]]></svg><![CDATA[<a href=x>]]>": (
        "<svg><![CDATA[<a href=x>]]></svg><![CDATA[<a href=x>]]>"
    ),
    "<a href=x href=x>": "<a href=y href=x>",
    "<a href=x\0>": "<a href=x\0>",
    "</a href=x><a href=x": "</a href=x><a href=x",
}


@pytest.mark.parametrize(("page", "expected"), PAGES.items(), ids=[repr(page) for page in PAGES])
def test_link_is_replaced_in_place(page: str, expected: str) -> None:
    """Only the URL is replaced."""
    assert rewrite(page, {"x": "y"}).body.decode() == expected


# Each page after `x` is replaced by a URL with special characters.
SPECIAL = "a&b='\"(c),;"
ESCAPED_PAGES = {
    "<a href='x'>": "<a href='a&amp;b=&#39;\"(c),;'>",
    '<a href="x">': '<a href="a&amp;b=\'&quot;(c),;">',
    "<a href=x>": "<a href=a&amp;b=&#39;&quot;(c),;>",
    "<img srcset='x 2x'>": "<img srcset='a&amp;b=&#39;\"(c),; 2x'>",
    "<p style='a:url(x)'>": "<p style='a:url(a&amp;b=\\&#39;\\\"\\(c\\),;)'>",
    "<style>a{b:url(x)}</style>": "<style>a{b:url(a&b=\\'\\\"\\(c\\),;)}</style>",
    "<style>@import 'x'</style>": "<style>@import 'a&b=\\'\"(c),;'</style>",
    "<meta http-equiv=refresh content=\"0;url='x'\">": (
        "<meta http-equiv=refresh content=\"0;url='a&amp;b=%27%22(c),;'\">"
    ),
    "<applet archive='x'>": "<applet archive='a&amp;b=&#39;\"(c)%2C;'>",
    "<iframe srcdoc=\"<a href='x'>\"></iframe>": (
        "<iframe srcdoc=\"<a href='a&amp;amp;b=&amp;#39;&quot;(c),;'>\"></iframe>"
    ),
}


@pytest.mark.parametrize(("page", "expected"), ESCAPED_PAGES.items(), ids=ESCAPED_PAGES)
def test_replacement_is_escaped_for_context(page: str, expected: str) -> None:
    """Special characters are escaped for their position."""
    assert rewrite(page, {"x": SPECIAL}).body.decode() == expected


def test_entity_without_semicolon_before_url_is_terminated() -> None:
    """The entity must not absorb the first characters of the replacement."""
    page = "<p style='a:url(&#34x&#34) url(&quot/x&quot)'><iframe srcdoc='<p style=a:url(&amp;#34x&amp;#34)>'></iframe>"
    result = rewrite(page, {"x": "1", "http://h.example/x": "2"}).body.decode()
    assert result == (
        "<p style='a:url(&#34;1&#34) url(&quot;2&quot)'><iframe srcdoc='<p style=a:url(&amp;#34;1&amp;#34)>'></iframe>"
    )


def test_commas_at_ends_of_srcset_url_are_encoded() -> None:
    """Commas inside the URL remain."""
    assert rewrite("<img srcset='x 2x, z,'>", {"x": ",a,b,", "z": "c,"}).body == b"<img srcset='%2Ca,b%2C 2x, c%2C,'>"


def test_refresh_replacement_beginning_with_url_is_prefixed() -> None:
    """The replacement is not mistaken for the keyword `url=`."""
    assert rewrite("<meta http-equiv=refresh content='0;x'>", {"x": "url=y"}).body.count(b"0;url=url=y") == 1


def test_fragment_is_preserved_unless_replaced() -> None:
    """The original fragment remains unless the replacement has its own."""
    replacements = {"x": "y", "z": "y#own"}
    page = "<a href=x#a><a href=z#b><a href=z><a href=#c><style>a{b:url('x#\\64')}</style>"
    assert (
        rewrite(page, replacements).body
        == b"<a href=y#a><a href=y#own><a href=y#own><a href=#c><style>a{b:url('y#d')}</style>"
    )


def test_callback_receives_each_link_once() -> None:
    """The callback is called once per URL and kind, in order, for web URLs other than the page."""
    calls: list[tuple[str, LinkKind]] = []
    page = b"<a href=x><a href='x#y'><img src=x><a href=#z><a href=''>" + b"".join(
        b"<a href='%s'>" % each
        for each in (b"javascript:x", b"java\nscript:x", b"data:,x", b"mailto:x@y.example", b"tel:1")
    )
    result = rewrite_links(page, "text/html", BASE, None, lambda uri, use: calls.append((uri, use)))
    assert calls == [(FOLDER + "x", LinkKind.PAGE), (FOLDER + "x", LinkKind.REQUISITE)]
    assert result.body is page
    assert result == RewriteResult(page, 0, 0, None, "UTF-8", is_decompressed=False, has_csp=False, is_truncated=False)


def test_xhtml_and_svg_are_rewritten_as_xml() -> None:
    """Processing instructions, entities and CDATA sections are supported."""
    body = (
        "<?xml-stylesheet href='x'?><svg:svg><svg:style>a{b:url(&quot;x&quot;)}</svg:style>"
        "<style><![CDATA[@import 'x']]></style>"
    )
    replacements = {"x": "y&z"}
    assert rewrite(body, replacements, "image/svg+xml").body.decode() == (
        "<?xml-stylesheet href='y&amp;z'?><svg:svg><svg:style>a{b:url(&quot;y&amp;z&quot;)}</svg:style>"
        "<style><![CDATA[@import 'y&z']]></style>"
    )


def test_url_containing_cdata_start_is_not_replaced() -> None:
    """Removing the start would change the meaning of the remaining style."""
    page = "<svg><style>a{{b:url({})}} c{{d:url(x<![CDATA[y)}} e{{f:url({})}} ]]></style></svg>"
    result = rewrite_links(page.format("x", "z").encode(), "image/svg+xml", BASE, None, lambda _, __: "n")
    assert (result.body.decode(), result.changed) == (page.format("n", "n"), 2)


def test_url_containing_cdata_end_is_not_replaced() -> None:
    """Removing the end would extend the section to the rest of the page."""
    page = "<svg><style><![CDATA[a{{b:url({})}} c{{d:url(x]]>y)}} e{{f:url({})}} </style><a href='{}'/></svg>"
    result = rewrite_links(page.format("x", "z", "x").encode(), "image/svg+xml", BASE, None, lambda _, __: "n")
    assert (result.body.decode(), result.changed) == (page.format("n", "n", "n"), 3)


def test_feeds_scripts_and_images_are_not_rewritten() -> None:
    """The callback is not called for them."""
    for body, mime in [
        (b"<urlset><loc>http://h.example/d/x</loc></urlset>", "text/xml"),
        (b"<rss><link>http://h.example/d/x</link></rss>", "text/xml"),
        (b"'http://h.example/d/x'", "text/javascript"),
        (b"\x89PNG\r\n", "image/png"),
    ]:
        result = rewrite(body, {"x": "y"}, mime)
        assert (result.body, result.charset) == (body, None)


def raise_lookup_error(uri: str, use: LinkKind) -> str:
    """Raise LookupError."""
    raise LookupError(uri, use)


def test_exception_of_callback_is_propagated() -> None:
    """An exception of the callback is not caught."""
    with pytest.raises(LookupError, match="example"):
        rewrite_links(b"<a href=x>", "text/html", BASE, None, raise_lookup_error)


@pytest.mark.parametrize("replacement", ["", "é", "a b", "a\nb", "\x7f", "x" * 8_001, "\udc80"])
def test_invalid_replacement_is_rejected(replacement: str) -> None:
    """Replacements must be ASCII without blanks and control characters, and of limited length."""
    with pytest.raises(UsageError, match="%XX"):
        rewrite("<a href=x>", {"x": replacement})


BASES = {
    "<base href=/b/><a href=x><a href=z>": "<base data-href=/b/><a href=y><a href=http://h.example/b/z>",
    "<base href='/b/'><a href='z#f'><a href='http://o.example/z'><a href='/z'>": (
        "<base data-href='/b/'><a href='http://h.example/b/z#f'><a href='http://o.example/z'><a href='/z'>"
    ),
    "<base href='//o.example/d/'><a href=x><a href='/w'><a href='#top'>": (
        "<base data-href='//o.example/d/'><a href=http://o.example/d/x><a href='http://o.example/w'><a href='#top'>"
    ),
    "<a href=z><base href=/b/><base href=/c/>": "<a href=http://h.example/b/z><base data-href=/b/><base data-href=/c/>",
    "<base href='p.html'><a href=z>": "<base data-href='p.html'><a href=z>",
    "<base target=_top><a href=z>": "<base target=_top><a href=z>",
    "<base href=/b/><form action=z><q cite='z'><button formaction=//o.example/>": (
        "<base data-href=/b/><form action=http://h.example/b/z>"
        "<q cite='http://h.example/b/z'><button formaction=//o.example/>"
    ),
    "<base href=/b/><p style='a:url(z)'><img srcset='z 1x, z,'>": (
        "<base data-href=/b/><p style='a:url(http://h.example/b/z)'><img srcset='http://h.example/b/z 1x, http://h.example/b/z,'>"
    ),
    "<base href=/b/ data-href=0>": "<base data-was-href=/b/ data-href=0>",
}


@pytest.mark.parametrize(("page", "expected"), BASES.items(), ids=BASES)
def test_dropped_base_preserves_other_links(page: str, expected: str) -> None:
    """Unreplaced links become absolute; without the option the base remains."""
    replacements = {"http://h.example/b/x": "y"}
    assert rewrite(page, replacements, drop_base=True).body.decode() == expected
    assert rewrite(page, replacements).body.decode() == page.replace("href=x", "href=y" if "=/b/" in page else "href=x")


def test_integrity_of_replaced_link_is_dropped() -> None:
    """The hash would not match the new resource."""
    page = (
        "<script src=x integrity=sha256-a crossorigin></script><script src=z integrity=sha256-b></script>"
        "<link rel=stylesheet INTEGRITY='sha256-c' href='x' data-integrity=d>"
    )
    assert rewrite(page, {"x": "y"}, drop_integrity=True).body.decode() == (
        "<script src=y data-integrity=sha256-a data-crossorigin></script><script src=z integrity=sha256-b></script>"
        "<link rel=stylesheet data-was-INTEGRITY='sha256-c' href='y' data-integrity=d>"
    )
    assert rewrite(page, {"x": "y"}).body.decode() == page.replace("src=x", "src=y").replace("'x'", "'y'")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<base href=/b/ href=/c/><a href=x>", "<base data-href=/b/ data-href=/c/><a href=y>"),
        (
            "<script src=/b/x integrity=a Integrity=b></script>",
            "<script src=y data-integrity=a data-Integrity=b></script>",
        ),
        (
            "<meta http-equiv=Content-Security-Policy http-equiv=refresh content=x>",
            "<meta data-http-equiv=Content-Security-Policy data-http-equiv=refresh content=x>",
        ),
        (
            "<object codebase=/b/ codebase=/c/ data=x></object>",
            "<object data-codebase=/b/ data-codebase=/c/ data=y></object>",
        ),
    ],
)
def test_duplicate_attributes_are_all_renamed(page: str, expected: str) -> None:
    """Otherwise the second attribute would take effect."""
    result = rewrite(page, {"http://h.example/b/x": "y"}, drop_base=True, drop_integrity=True, drop_csp=True)
    assert result.body.decode() == expected


def test_content_security_policy_is_reported_and_dropped() -> None:
    """A policy is reported, and disabled on request."""
    page = "<meta http-equiv='content-security-policy' content='default-src https:'>"
    assert (rewrite(page, {}).has_csp, rewrite(page, {}).body) == (True, page.encode())
    assert rewrite(page, {}, drop_csp=True).body.decode() == page.replace("http-equiv", "data-http-equiv")
    assert not rewrite("<meta http-equiv=refresh content=1>", {}, drop_csp=True).has_csp


def test_codebase_of_replaced_link_is_dropped() -> None:
    """Unreplaced links of the element become absolute."""
    page = "<object codebase=/o/ data=x archive='z w'></object><object codebase=/o/ data=z></object>"
    assert rewrite(page, {"http://h.example/o/x": "y"}).body.decode() == (
        "<object data-codebase=/o/ data=y archive='http://h.example/o/z http://h.example/o/w'></object>"
        "<object codebase=/o/ data=z></object>"
    )


@pytest.mark.parametrize(
    ("charset", "name"), [("utf-16", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("iso-2022-jp", "ISO-2022-JP")]
)
def test_non_ascii_charset_is_transcoded_to_utf_8(charset: str, name: str) -> None:
    """Pages in UTF-16 or ISO-2022-JP are written in UTF-8 if a link changes."""
    page = (
        "<?xml version='1.0' encoding='{0}'?><meta charset={0}>"
        "<meta http-equiv=content-type content='text/html; charset={0}'>表<a href='x'>"
    )
    body = page.format("x-sjis").encode(charset)
    declared = charset.replace("-be", "be") if charset != "utf-16" else None
    result = rewrite(body, {"x": "y"}, charset=declared)
    assert result.body.decode("utf-8-sig") == page.format("utf-8").replace("'x'", "'y'")
    assert result.body.startswith(b"\xef\xbb\xbf")
    assert (result.transcoded_from, result.charset, result.changed) == (name, "UTF-8", 1)
    unchanged = rewrite(body, {}, charset=declared)
    assert (unchanged.body, unchanged.transcoded_from, unchanged.charset) == (body, None, name)


def test_charset_rule_is_updated_after_transcoding() -> None:
    """`@charset` names the new charset."""
    result = rewrite('@charset "utf-16"; a { b: url(x) }'.encode("utf-16"), {"x": "y"}, "text/css")
    assert result.body.decode("utf-8-sig") == '@charset "utf-8"; a { b: url(y) }'


def test_gzipped_page_is_decompressed_if_changed() -> None:
    """Unchanged and damaged bodies are returned as they are."""
    body = gzip.compress(b"<html><a href=x>")
    assert (rewrite(body, {"x": "y"}).body, rewrite(body, {"x": "y"}).is_decompressed) == (b"<html><a href=y>", True)
    assert (rewrite(body, {}).body, rewrite(body, {}).is_decompressed) == (body, False)
    assert (rewrite(body[:-9], {"x": "y"}).body, rewrite(body[:-9], {"x": "y"}).is_truncated) == (body[:-9], True)


SCRIPTS = {
    b"a('/x.png', \"/d/y.html?z#w\")": ["http://h.example/x.png", "http://h.example/d/y.html?z"],
    b"'http://o.example/page' `//o.example/a.js`": ["http://o.example/page", "http://o.example/a.js"],
    b'{"a":"https:\\/\\/o.example\\/b\\/"}': ["https://o.example/b/"],
    b"'/folder/' '/a' '/g' '/' '/api/users' '/*.js' 'text/html'": [
        "http://h.example/folder/",
        "http://h.example/*.js",
    ],
    b"'x.png' \"img\\/1.jpg?a\" './2.gif' '../3.html#b' 'x.y/z.PDF'": [
        "http://h.example/d/x.png",
        "http://h.example/d/img/1.jpg?a",
        "http://h.example/d/2.gif",
        "http://h.example/3.html",
        "http://h.example/d/x.y/z.PDF",
    ],
    b"'a/b' '.png' '*.png' 'a:b.png' 'a//b.png' '?x.png' 'folder/' '1.5.0' 'A.B' 'png' 'x' + 'y.png' 'a b.png'": [],
    b"'/img/' + name + '.png'; '/a' + '/b.png'; `/img/${name}.png`": [],
    b"'http://www.w3.org/2000/svg' 'http://localhost/x' 'http://' 'mailto:x' '/a b.png' '/\xe9.png'": [],
    b"'http://h.example/here' \"it's\" '/ok.css'": ["http://h.example/here", "http://h.example/ok.css"],
}


@pytest.mark.parametrize(("script", "expected"), SCRIPTS.items(), ids=[repr(script) for script in SCRIPTS])
def test_urls_in_script_strings_are_found(script: bytes, expected: list[str]) -> None:
    """Complete URLs in strings are candidates; parts of URLs and names are not."""
    assert find_urls_in_script(script, BASE) == expected
