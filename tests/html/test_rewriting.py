"""What is rewritten in a page, and how it is written; what else changes with it on request."""

import gzip
from typing import Unpack

import pytest

from tests.html.rewrite_options import RewriteOptions
from unlost.errors import UsageError
from unlost.html import LinkKind, RewriteResult, find_urls_in_script, rewrite_links

BASE = "http://h.example/d/p.html"
FOLDER = "http://h.example/d/"


def new(
    body: str | bytes,
    answers: dict[str, str],
    mime: str | None = "text/html",
    charset: str | None = None,
    **options: Unpack[RewriteOptions],
) -> RewriteResult:
    """Rewrite a page at BASE; answers are by addresses, those in its folder without it."""
    data = body.encode() if isinstance(body, str) else body
    return rewrite_links(data, mime, BASE, charset, lambda uri, _: answers.get(uri.removeprefix(FOLDER)), **options)


# Each: what is there, and what is there when `x` has become `y`.
PLACES = {
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


@pytest.mark.parametrize(("page", "expected"), PLACES.items(), ids=[repr(page) for page in PLACES])
def test_places(page: str, expected: str) -> None:
    """In each place the address is replaced, and nothing else."""
    assert new(page, {"x": "y"}).body.decode() == expected


# Each: how an address with all that is special is written.
SPECIAL = "a&b='\"(c),;"
WRITINGS = {
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


@pytest.mark.parametrize(("page", "expected"), WRITINGS.items(), ids=WRITINGS)
def test_writings(page: str, expected: str) -> None:
    """What is special in a place is escaped there."""
    assert new(page, {"x": SPECIAL}).body.decode() == expected


def test_entities_without_an_end() -> None:
    """An entity without its semicolon right before an address stays one, whatever the new one begins with."""
    page = "<p style='a:url(&#34x&#34) url(&quot/x&quot)'><iframe srcdoc='<p style=a:url(&amp;#34x&amp;#34)>'></iframe>"
    done = new(page, {"x": "1", "http://h.example/x": "2"}).body.decode()
    assert done == (
        "<p style='a:url(&#34;1&#34) url(&quot;2&quot)'><iframe srcdoc='<p style=a:url(&amp;#34;1&amp;#34)>'></iframe>"
    )


def test_candidates_with_commas() -> None:
    """Commas around an address of a `srcset` would not be part of it; inside they are."""
    assert new("<img srcset='x 2x, z,'>", {"x": ",a,b,", "z": "c,"}).body == b"<img srcset='%2Ca,b%2C 2x, c%2C,'>"


def test_a_refresh_to_something_called_url() -> None:
    """An address that looks like the word before an address is not taken for it."""
    assert new("<meta http-equiv=refresh content='0;x'>", {"x": "url=y"}).body.count(b"0;url=url=y") == 1


def test_fragments() -> None:
    """The fragment stays, unless the new address has its own."""
    answers = {"x": "y", "z": "y#own"}
    page = "<a href=x#a><a href=z#b><a href=z><a href=#c><style>a{b:url('x#\\64')}</style>"
    assert (
        new(page, answers).body == b"<a href=y#a><a href=y#own><a href=y#own><a href=#c><style>a{b:url('y#d')}</style>"
    )


def test_who_is_asked() -> None:
    """Each address is asked for once for each use, in order; what is not of the web, or the page itself, is not."""
    asked: list[tuple[str, LinkKind]] = []
    page = b"<a href=x><a href='x#y'><img src=x><a href=#z><a href=''>" + b"".join(
        b"<a href='%s'>" % each
        for each in (b"javascript:x", b"java\nscript:x", b"data:,x", b"mailto:x@y.example", b"tel:1")
    )
    done = rewrite_links(page, "text/html", BASE, None, lambda uri, use: asked.append((uri, use)))
    assert asked == [(FOLDER + "x", LinkKind.PAGE), (FOLDER + "x", LinkKind.REQUISITE)]
    assert done.body is page
    assert done == RewriteResult(page, 0, 0, None, "UTF-8", is_decompressed=False, has_csp=False, is_truncated=False)


def test_xml() -> None:
    """XHTML and drawings are rewritten as XML: in instructions, and in styles with entities or sections."""
    body = (
        "<?xml-stylesheet href='x'?><svg:svg><svg:style>a{b:url(&quot;x&quot;)}</svg:style>"
        "<style><![CDATA[@import 'x']]></style>"
    )
    answers = {"x": "y&z"}
    assert new(body, answers, "image/svg+xml").body.decode() == (
        "<?xml-stylesheet href='y&amp;z'?><svg:svg><svg:style>a{b:url(&quot;y&amp;z&quot;)}</svg:style>"
        "<style><![CDATA[@import 'y&z']]></style>"
    )


def test_an_address_in_which_a_section_begins() -> None:
    """It stays: without the beginning, the rest of the style would mean something else."""
    page = "<svg><style>a{{b:url({})}} c{{d:url(x<![CDATA[y)}} e{{f:url({})}} ]]></style></svg>"
    done = rewrite_links(page.format("x", "z").encode(), "image/svg+xml", BASE, None, lambda _, __: "n")
    assert (done.body.decode(), done.changed) == (page.format("n", "n"), 2)


def test_an_address_in_which_a_section_ends() -> None:
    """It stays, too: without the end, the rest of the page would be in the section."""
    page = "<svg><style><![CDATA[a{{b:url({})}} c{{d:url(x]]>y)}} e{{f:url({})}} </style><a href='{}'/></svg>"
    done = rewrite_links(page.format("x", "z", "x").encode(), "image/svg+xml", BASE, None, lambda _, __: "n")
    assert (done.body.decode(), done.changed) == (page.format("n", "n", "n"), 3)


def test_what_is_not_rewritten() -> None:
    """Feeds, sitemaps, scripts and pictures stay as they are, and nobody is asked."""
    for body, mime in [
        (b"<urlset><loc>http://h.example/d/x</loc></urlset>", "text/xml"),
        (b"<rss><link>http://h.example/d/x</link></rss>", "text/xml"),
        (b"'http://h.example/d/x'", "text/javascript"),
        (b"\x89PNG\r\n", "image/png"),
    ]:
        done = new(body, {"x": "y"}, mime)
        assert (done.body, done.charset) == (body, None)


def fail(uri: str, use: LinkKind) -> str:
    """Raise."""
    raise LookupError(uri, use)


def test_a_replacement_that_raises() -> None:
    """What is raised passes through."""
    with pytest.raises(LookupError, match="example"):
        rewrite_links(b"<a href=x>", "text/html", BASE, None, fail)


@pytest.mark.parametrize("answer", ["", "é", "a b", "a\nb", "\x7f", "x" * 8_001, "\udc80"])
def test_replacements_that_are_none(answer: str) -> None:
    """An address that is not written in ASCII, or has blanks or controls, is refused."""
    with pytest.raises(UsageError, match="%XX"):
        new("<a href=x>", {"x": answer})


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
def test_bases(page: str, expected: str) -> None:
    """A base that is dropped has no effect, and what was not replaced leads where it led; else the base stays."""
    answers = {"http://h.example/b/x": "y"}
    assert new(page, answers, drop_base=True).body.decode() == expected
    assert new(page, answers).body.decode() == page.replace("href=x", "href=y" if "=/b/" in page else "href=x")


def test_integrity() -> None:
    """Where an address was replaced, browsers do not compare what is there now with what was there once."""
    page = (
        "<script src=x integrity=sha256-a crossorigin></script><script src=z integrity=sha256-b></script>"
        "<link rel=stylesheet INTEGRITY='sha256-c' href='x' data-integrity=d>"
    )
    assert new(page, {"x": "y"}, drop_integrity=True).body.decode() == (
        "<script src=y data-integrity=sha256-a data-crossorigin></script><script src=z integrity=sha256-b></script>"
        "<link rel=stylesheet data-was-INTEGRITY='sha256-c' href='y' data-integrity=d>"
    )
    assert new(page, {"x": "y"}).body.decode() == page.replace("src=x", "src=y").replace("'x'", "'y'")


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
def test_attributes_that_are_there_twice(page: str, expected: str) -> None:
    """Of two the first counts; once it has another name, the second does not count in its place."""
    done = new(page, {"http://h.example/b/x": "y"}, drop_base=True, drop_integrity=True, drop_csp=True)
    assert done.body.decode() == expected


def test_policies() -> None:
    """A policy for where the page once was is told of, and has no effect if that is wanted."""
    page = "<meta http-equiv='content-security-policy' content='default-src https:'>"
    assert (new(page, {}).has_csp, new(page, {}).body) == (True, page.encode())
    assert new(page, {}, drop_csp=True).body.decode() == page.replace("http-equiv", "data-http-equiv")
    assert not new("<meta http-equiv=refresh content=1>", {}, drop_csp=True).has_csp


def test_codebases() -> None:
    """A codebase would make new addresses lead elsewhere; what was not replaced leads where it led."""
    page = "<object codebase=/o/ data=x archive='z w'></object><object codebase=/o/ data=z></object>"
    assert new(page, {"http://h.example/o/x": "y"}).body.decode() == (
        "<object data-codebase=/o/ data=y archive='http://h.example/o/z http://h.example/o/w'></object>"
        "<object codebase=/o/ data=z></object>"
    )


@pytest.mark.parametrize(
    ("charset", "name"), [("utf-16", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("iso-2022-jp", "ISO-2022-JP")]
)
def test_charsets_without_ascii(charset: str, name: str) -> None:
    """What cannot be written piece by piece comes out in UTF-8 and says so; without a change it stays as it was."""
    page = (
        "<?xml version='1.0' encoding='{0}'?><meta charset={0}>"
        "<meta http-equiv=content-type content='text/html; charset={0}'>表<a href='x'>"
    )
    body = page.format("x-sjis").encode(charset)
    told = charset.replace("-be", "be") if charset != "utf-16" else None
    done = new(body, {"x": "y"}, charset=told)
    assert done.body.decode("utf-8-sig") == page.format("utf-8").replace("'x'", "'y'")
    assert done.body.startswith(b"\xef\xbb\xbf")
    assert (done.transcoded_from, done.charset, done.changed) == (name, "UTF-8", 1)
    same = new(body, {}, charset=told)
    assert (same.body, same.transcoded_from, same.charset) == (body, None, name)


def test_a_style_sheet_without_ascii() -> None:
    """The charset that a style sheet declares is that in which it comes out."""
    done = new('@charset "utf-16"; a { b: url(x) }'.encode("utf-16"), {"x": "y"}, "text/css")
    assert done.body.decode("utf-8-sig") == '@charset "utf-8"; a { b: url(y) }'


def test_packed() -> None:
    """A page that is gzipped comes out unpacked if something changes."""
    body = gzip.compress(b"<html><a href=x>")
    assert (new(body, {"x": "y"}).body, new(body, {"x": "y"}).is_decompressed) == (b"<html><a href=y>", True)
    assert (new(body, {}).body, new(body, {}).is_decompressed) == (body, False)
    assert (new(body[:-9], {"x": "y"}).body, new(body[:-9], {"x": "y"}).is_truncated) == (body[:-9], True)


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
def test_scripts(script: bytes, expected: list[str]) -> None:
    """Whole addresses in strings are candidates, parts of them and names are not."""
    assert find_urls_in_script(script, BASE) == expected
