"""Links in all elements, attributes and formats, with their kinds."""

import gzip

import pytest

from unlost.html import Link, LinkKind, extract_links

BASE = "http://h.example/d/p.html"
FOLDER = "http://h.example/d/"


def format_links(
    body: str | bytes, mime: str | None = "text/html", base: str = BASE, charset: str | None = None
) -> str:
    """Return the links in one line: `p`, `r` or `l` for the kind, and the URL relative to the folder."""
    data = body.encode() if isinstance(body, str) else body
    return " ".join(
        f"{link.kind.value[0]}:{link.uri.removeprefix(FOLDER)}" for link in extract_links(data, mime, base, charset)
    )


ELEMENTS = {
    "<a href=x>": "p:x",
    "<area href=x>": "p:x",
    "<frame src=x>": "p:x",
    "<iframe src=x></iframe>": "p:x",
    "<iframe srcdoc='<img src=x><a href=&quot;y&quot;>'></iframe>": "r:x p:y",
    "<img src=x longdesc=y>": "r:x p:y",
    "<img srcset='x 1x, y 2x'>": "r:x r:y",
    "<picture><source srcset=x><img src=y></picture>": "r:x r:y",
    "<script src=x></script>": "r:x",
    "<input type=Image src=x><input type=text src=y>": "r:x",
    "<video src=x poster=y><source src=z><track src=w></video><audio src=v></audio>": "r:x r:y r:z r:w r:v",
    "<embed src=x><bgsound src=y>": "r:x r:y",
    "<object data=x><param name=movie value=y><param name=quality value=high></object>": "r:x r:y",
    "<object codebase=/o/ data=x archive='y z'></object>": "r:http://h.example/o/x r:http://h.example/o/y r:http://h.example/o/z",
    "<applet code=X.class archive='y.jar,z.jar' codebase=j/></applet>": "r:j/X.class r:j/y.jar r:j/z.jar",
    "<body background=x><table background=y><td background=z><p background=w>": "r:x r:y r:z",
    "<p style='background: url(x)'>": "r:x",
    "<p style='background: url(&quot;x&quot;)'>": "r:x",
    "<style>@import 'x'; p { background: url(y) }</style>": "r:x r:y",
    "<meta http-equiv=refresh content='5; url=x'>": "p:x",
    "<meta http-equiv=refresh content=5>": "",
    "<meta property=og:image content=x><meta name=twitter:image content=y><meta name=author content=z>": "r:x r:y",
    "<img data-src=x data-srcset='y 1x'><iframe data-src=z></iframe>": "r:x r:y p:z",
    "<noscript><img src=x></noscript>": "r:x",
    "<noframes><body><a href=x></body></noframes>": "p:x",
    "<svg><image xlink:href=x /><use href='y#part'/><a xlink:href=z></a></svg>": "r:x r:y p:z",
    "<svg><style>p { fill: url(x#y) }</style><use href='#part'/></svg>": "r:x",
    "<svg><path fill='url(x#a)' stroke=url(#b) filter=url(y#c) mask=url(z#d) clip-path='url(&quot;w#e&quot;)'/>": (
        "r:x r:y r:z r:w"
    ),
    "<svg><g cursor=url(x) marker-start=url(y#a) marker-mid=url(z#a) marker-end=url(w#a) fill=red></g></svg>": (
        "r:x r:y r:z r:w"
    ),
    "<html manifest=x>": "r:x",
    "<form action=x><button formaction=y>": "",
    "<script>document.write('<a href=x>')</script><!-- <a href=y> --><textarea><a href=z></textarea>": "",
    "<div data-href=x href=y src=z>": "",
    "<template><a href=x></template>": "p:x",
}


@pytest.mark.parametrize(("page", "expected"), ELEMENTS.items(), ids=ELEMENTS)
def test_links_of_elements_are_extracted(page: str, expected: str) -> None:
    """Only attributes that contain links are read."""
    assert format_links(page) == expected


RELATIONS = {
    "rel=stylesheet": "r",
    "rel='alternate stylesheet'": "r",
    "rel='SHORTCUT ICON'": "r",
    "rel=apple-touch-icon": "r",
    "rel=manifest": "r",
    "rel=modulepreload": "r",
    "rel=preload as=font": "r",
    "rel=preload as=document": "p",
    "rel=prefetch": "p",
    "rel=prefetch as=script": "r",
    "rel=alternate type=application/rss+xml": "l",
    "rel=alternate type='application/atom+xml; charset=utf-8'": "l",
    "rel=alternate hreflang=de": "p",
    "rel=sitemap": "l",
    "rel=canonical": "p",
    "rel=next": "p",
    "rel=prev": "p",
    "rel=preconnect": "",
    "rel='dns-prefetch preconnect'": "",
    "": "",
}


@pytest.mark.parametrize(("attributes", "use"), RELATIONS.items(), ids=RELATIONS)
def test_link_element_kind_depends_on_relation(attributes: str, use: str) -> None:
    """The kind follows from `rel`, `as` and `type`."""
    assert format_links(f"<link {attributes} href=x>") == (f"{use}:x" if use else "")


def test_imagesrcset_of_preload_is_extracted() -> None:
    """A preload has image candidates."""
    assert format_links("<link rel=preload as=image href=x imagesrcset='y 1x, z 2x'>") == "r:x r:y r:z"


URL_NOTATIONS = {
    "<a href=' \n x\ty \r'>": "p:xy",
    "<a href='x#y'><a href='#z'><a href=''><a href>": "p:x",
    "<a href='x?a&amp;b=1&copy=2&lt'>": "p:x?a&b=1&copy=2%3C",
    "<a href='&#x78;&#121;&Eacute;'>": "p:xy%C3%89",
    "<a href=../../../x>": "p:http://h.example/x",
    "<a href='\\\\other.example\\x'>": "p:http://other.example/x",
    "<a href='//Other.Example:80/x'>": "p:http://other.example/x",
    "<a href='http:x'>": "p:x",
    "<a href='HTTPS://other.example'>": "p:https://other.example/",
    "<a href='http://bücher.example/ü?ü'>": "p:http://xn--bcher-kva.example/%C3%BC?%C3%BC",
    "<a href='x y?a b'>": "p:x%20y?a%20b",
    "<a href='x%zz%41'>": "p:x%zz%41",
    "<A HREF=x Href=y>": "p:x",
    "<a\nhref\n=\n'x'/><a/href=y>": "p:x p:y",
    "<a href=x><a href=x><img src=x>": "p:x r:x",
    "<a href='javascript:x'><a href='java\nscript:x'><a href='mailto:x'><a href='data:,x'><a href='about:blank'>": "",
    "<a href='ftp://h.example/'><a href='tel:1'><a href='http://'><a href='http://[x]/'><a href='http://x:99999/'>": "",
    "<a href='x\0y'>": "p:x%EF%BF%BDy",
    "<a href=x<b>": "p:x%3Cb",
}


@pytest.mark.parametrize(("page", "expected"), URL_NOTATIONS.items(), ids=[repr(page) for page in URL_NOTATIONS])
def test_link_url_is_parsed_like_in_browsers(page: str, expected: str) -> None:
    """URLs are normalised as by browsers."""
    assert format_links(page) == expected


BASES = {
    "<a href=x><base href=/b/><base href=/c/>": "p:http://h.example/b/x",
    "<base target=_top><base href=//other.example><a href=x>": "p:http://other.example/x",
    "<base href='data:,x'><a href=x>": "p:x",
    "<base href='http://['><a href=x>": "p:x",
    "<noscript><base href=/b/></noscript><a href=x>": "p:x",
}


@pytest.mark.parametrize(("page", "expected"), BASES.items(), ids=BASES)
def test_links_are_resolved_against_first_base(page: str, expected: str) -> None:
    """The first base applies to all links, also to those before it."""
    assert format_links(page) == expected


STYLES = {
    "a { b: url(x) url( 'y' ) url(\"z\") }": "r:x r:y r:z",
    "@import 'x'; @import url(y) screen; @IMPORT\n\"z\" print;": "r:x r:y r:z",
    "@font-face { src: local('no'), url(x.woff2) format('woff2'), url(y.woff) }": "r:x.woff2 r:y.woff",
    "a { b: image-set('x' 1x, url(y) 2x, 'z' type('image/png') 3x) }": "r:x r:y r:z",
    "a { b: -webkit-image-set(url(x) 1x) }": "r:x",
    r"a { b: url(\78 y\)z) url('\79\
') }": "r:xy)z r:y",
    "/* url(no) */ a::before { content: 'url(no)' } <!-- b { c: url(x) } -->": "r:x",
    "@namespace url(http://www.w3.org/1999/xhtml); @namespace svg 'no'; a { b: url(x) }": "r:x",
    "@media print { @supports (a: b) { c { d: url(x) } } }": "r:x",
    "a { behavior: url(#default#VML); b: url(data:image/png;base64,AA==) url() url('') }": "",
    "a { filter: progid:DXImageTransform.Microsoft.AlphaImageLoader(sizingMethod='scale', src='x') }": "r:x",
    "a { b: url(x y) url(z) } ) } ] c { d: url(w) }": "r:z r:w",
    "a { b: url(x": "r:x",
}


@pytest.mark.parametrize(("sheet", "expected"), STYLES.items(), ids=STYLES)
def test_links_of_style_sheet_are_extracted(sheet: str, expected: str) -> None:
    """Style sheet files and style elements yield the same links."""
    assert format_links(sheet, "text/css") == expected
    assert format_links(f"<style>{sheet}</style>") == expected


XHTML = (
    '<?xml version="1.0"?><?xml-stylesheet href="s.css" type="text/css"?><!DOCTYPE html [<!ENTITY x "<a href=no>">]>'
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><script src="x"/><title/>'
    "<style><![CDATA[a { b: url(y) }]]></style></head>"
    '<body><a href="z?1&amp;2">z</a><![CDATA[<a href="no">]]><!-- <a href="no"> --></body></html>'
)


def test_xhtml_is_parsed_as_xml() -> None:
    """Elements may be self-closing, and CDATA sections contain no elements."""
    assert format_links(XHTML, "application/xhtml+xml") == "r:s.css r:x r:y p:z?1&2"


def test_links_of_svg_file_are_extracted() -> None:
    """SVG files are parsed like SVG elements in pages."""
    body = '<svg xmlns:xlink="q"><image xlink:href="x"/><style>a { b: url(y) }</style><a xlink:href="z"/></svg>'
    assert format_links(body, "image/svg+xml") == "r:x r:y p:z"
    assert format_links(body, None) == "r:x r:y p:z"
    assert format_links(body.replace("xlink", "ns1"), "image/svg+xml") == "r:x r:y p:z"


LISTINGS = {
    "<urlset><url><loc> http://h.example/d/x?a&amp;b </loc><image:image><image:loc>http://h.example/d/y</image:loc>"
    "</image:image></url><url><loc><![CDATA[http://h.example/d/z]]></loc></url></urlset>": "p:x?a&b r:y p:z",
    "<sitemapindex><sitemap><loc>http://h.example/d/x</loc></sitemap></sitemapindex>": "l:x",
    "<rss version='0.91'><channel><link>x</link><image><url>y</url><link>z</link></image><item><link>w</link></item>"
    "</channel></rss>": "p:x r:y p:z p:w",
    "<rss version='2.0'><channel><atom:link rel='self' href='f'/><item><link>x</link><guid>http://h.example/d/y</guid>"
    "<guid isPermaLink='false'>http://h.example/d/no</guid><enclosure url='z.mp3'/><comments>w</comments>"
    "<description>&lt;img src='v'&gt;</description><content:encoded><![CDATA[<a href='u'>]]></content:encoded>"
    "</item></channel></rss>": "l:f p:x p:y r:z.mp3 p:w r:v p:u",
    "<rdf:RDF><channel rdf:about='no'><link>x</link></channel><item><link>y</link></item></rdf:RDF>": "p:x p:y",
    "<feed xml:base='/b/'><link rel='self' href='f'/><link href='x'/><icon>i</icon><entry>"
    "<link rel='enclosure' href='e'/><link rel='alternate' href='y'/>"
    "<link rel='edit' href='no'/><content type='html'>&lt;a href='z'></content>"
    "<content type='xhtml'><div><img src='w'/></div></content></entry></feed>": (
        "l:http://h.example/b/f p:http://h.example/b/x r:http://h.example/b/i r:http://h.example/b/e "
        "p:http://h.example/b/y p:http://h.example/b/z r:http://h.example/b/w"
    ),
}


@pytest.mark.parametrize("mime", ["application/xml", "text/html", None])
@pytest.mark.parametrize(("body", "expected"), LISTINGS.items())
def test_links_of_sitemap_or_feed_are_extracted(body: str, expected: str, mime: str | None) -> None:
    """Sitemaps and feeds are detected by their content for any media type."""
    assert format_links(f"<?xml version='1.0'?>\n<!-- made by hand -->\n{body}", mime) == expected


def test_gzipped_sitemap_is_decompressed() -> None:
    """The file may have several gzip members."""
    body = gzip.compress(b"<urlset><url><loc>http://h.example/d/x</loc>") + gzip.compress(b"</url></urlset>")
    assert format_links(body, "application/x-gzip", "http://h.example/sitemap.xml.gz") == "p:x"


def test_sitemaps_of_robots_txt_are_extracted() -> None:
    """robots.txt is detected by its URL."""
    body = "User-agent: *\r\nDisallow: /d/\r\nSITEMAP : http://h.example/d/x\r\nSitemap: /d/y # ours\n"
    assert format_links(body, "text/plain", "http://h.example/robots.txt") == "l:x l:y"
    assert format_links(body, "text/plain", "http://h.example/d/robots.txt") == ""


def test_text_sitemap_is_detected_by_name() -> None:
    """A list of URLs is a sitemap only if it is named so."""
    body = "http://h.example/d/x\n\nnot one\nhttps://h.example/d/y\n"
    assert format_links(body, "text/plain", "http://h.example/sitemap.txt") == "p:x p:https://h.example/d/y"
    assert format_links(body, "text/plain", "http://h.example/notes.txt") == ""


@pytest.mark.parametrize("mime", [None, "", "text/plain", "image/gif", "text/css", "application/x-unknown", "nonsense"])
@pytest.mark.parametrize(
    "start", ["<!DOCTYPE html>", "<HTML>", " \n<!-- x --><body>", "<?xml version='1.0'?><html>", "\ufeff<p>"]
)
def test_html_with_wrong_media_type_is_parsed(mime: str | None, start: str) -> None:
    """Obvious HTML is parsed as HTML."""
    assert format_links(f"{start}<a href=x>", mime) == "p:x"


@pytest.mark.parametrize(
    ("body", "mime"),
    [
        ("var x = '<a href=x>'", "text/javascript"),
        ("<!-- hide\ndocument.write('<a href=x>')\n// -->", "text/javascript"),
        ('{"a": "<a href=x>"}', "application/json"),
        ("see <a href=x>", "text/plain"),
        ("<note><a href='x'/></note>", "text/xml"),
        ("", "text/html"),
        ("", None),
    ],
)
def test_scripts_and_data_have_no_links(body: str, mime: str | None) -> None:
    """Scripts, data and plain text have no links, even if they contain markup."""
    assert format_links(body, mime) == ""


def test_style_sheet_without_media_type_is_detected_by_name() -> None:
    """A style sheet of unknown type is detected by its file name."""
    assert format_links("a { b: url(x) }", None, "http://h.example/d/s.css?v=1") == "r:x"
    assert format_links("a { b: url(x) }", None) == ""


ENCODED_WORDS = {
    "shift_jis": ("日本", "%93%FA%96{"),
    "windows-1251": ("дом", "%E4%EE%EC"),
    "gbk": ("中文", "%D6%D0%CE%C4"),
    "iso-2022-jp": ("日本", "%1B$BF|K\\%1B(B"),
    "utf-8": ("日本", "%E6%97%A5%E6%9C%AC"),
    "utf-16": ("日本", "%E6%97%A5%E6%9C%AC"),
    "utf-16-be": ("日本", "%E6%97%A5%E6%9C%AC"),
}


@pytest.mark.parametrize("charset", ENCODED_WORDS)
@pytest.mark.parametrize("declared", ["by the server", "in its type", "by the page"])
def test_link_in_legacy_charset_is_encoded_like_in_browsers(charset: str, declared: str) -> None:
    """Paths are encoded in UTF-8, queries in the charset of the page."""
    word, query = ENCODED_WORDS[charset]
    name = charset if charset != "utf-16-be" else "utf-16be"
    meta = f"<meta charset={name}>" if declared == "by the page" else ""
    body = f"{meta}<a href='{word}?{word}'>".encode(charset)
    mime = f'text/html; charset="{name}"' if declared == "in its type" else "text/html"
    path = "".join(f"%{byte:02X}" for byte in word.encode())
    assert format_links(body, mime, charset=name if declared == "by the server" else None) == f"p:{path}?{query}"


def test_undeclared_charset_is_utf_8_or_windows_1252() -> None:
    """Invalid UTF-8 is read as windows-1252."""
    assert format_links("<a href='ü?ü'>".encode()) == "p:%C3%BC?%C3%BC"
    assert format_links("<a href='ü?ü'>".encode("windows-1252")) == "p:%C3%BC?%FC"
    assert format_links("<a href='ü?ü'>".encode(), charset="no-such-charset") == "p:%C3%BC?%C3%BC"
    assert format_links(b"<a href='x'>\xc3") == "p:x"
    # A byte order mark overrides the server's charset.
    assert format_links(b"\xef\xbb\xbf<a href='\xc3\xbc'>", charset="windows-1251") == "p:%C3%BC"


@pytest.mark.parametrize(
    "meta",
    [
        "<meta charset=windows-1251>",
        "<META http-equiv='Content-Type' CONTENT='text/html; charset = windows-1251'>",
        "<!-- <meta charset=gbk> --><meta name=x content=y><meta charset = 'windows-1251' />",
        "<?xml version='1.0' encoding='windows-1251'?>",
    ],
)
def test_charset_declared_in_page_is_used(meta: str) -> None:
    """Pages declare their charset in several ways."""
    assert format_links(f"{meta}<a href='x?д'>".encode("windows-1251")) == "p:x?%E4"


def test_characters_outside_charset_are_encoded_as_references() -> None:
    """Queries contain numeric character references, as in browsers."""
    assert format_links("<meta charset=windows-1251><a href='x?&#128512;'>") == "p:x?%26%23128512%3B"


def test_charset_rule_of_style_sheet_is_used() -> None:
    """`@charset` declares the charset of a style sheet."""
    assert format_links('@charset "windows-1251"; a { b: url(д) }'.encode("windows-1251"), "text/css") == "r:%D0%B4"


def test_repeated_link_is_returned_once() -> None:
    """A link has a URL and a kind, and fragments are ignored."""
    assert extract_links(b"<a href=x><a href=x#y><a href=./x>", "text/html", BASE) == [
        Link(f"{FOLDER}x", LinkKind.PAGE)
    ]


def test_relative_links_without_web_base_are_omitted() -> None:
    """Only absolute URLs are returned."""
    for base in ("", "x", "file:///x", "http://["):
        assert format_links("<a href=x><a href=http://h.example/d/y>", base=base) == "p:y"
