"""Pages of the reference site with links in every form and bodies in every coding."""

import gzip
import random
from urllib.parse import quote

from tests.recovery.site import HOST, LIST, ROOT, Held, Ref, Site, a, guess, html, part, sitemap_link
from tests.recovery.special_cases import case, on

# Links at all places that browsers follow. `<base>` refers to another folder.
_FORMS = b"""<!doctype html><html><head><meta charset="utf-8"><base href="/forms/base/">
<style>@import "embedded.css"; h1 { background: url('/img/style-element.gif') }</style>
<meta http-equiv="refresh" content="600; url=refreshed.html"></head>
<body style="background-image: url(&quot;/img/inline.gif&quot;)">
<img src="/img/small.gif" srcset="/img/medium.gif 2x, /img/large.gif 3x">
<picture><source srcset="/img/wide.gif 800w"></picture>
<iframe src="framed.html"></iframe><a href="based.html">based</a><a href="?query=only">query</a>
<a href="mailto:somebody@lost.example">mail</a><a href="javascript:void(0)">script</a><a href="#top">top</a>
<a href="ftp://lost.example/file">ftp</a><a href="http://[broken/">broken</a>
<svg><a xlink:href="from-svg.html"><image href="/img/in-svg.gif"/></a></svg>
<object data="/img/object.gif"></object><video poster="/img/poster.gif"></video>
<!-- <a href="/forms/commented.html">no link</a> --></body></html>"""

_CSS = b"""@charset "utf-8"; @import url("more.css"); @import 'deep/deeper.css' screen;
@font-face { font-family: T; src: url(/fonts/town.woff2) format("woff2"), url('/fonts/town.ttf') }
body { background: #fff url( "/img/paper.gif" ) } /* url(/img/commented.gif) */"""

_SVG = b"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<image xlink:href="/img/in-drawing.gif"/></svg>"""


def _image(site: Site, name: str, archive: str = "b") -> Ref:
    path = f"/img/{name}.gif"
    made = on(archive, 2008, f"GIF89a {name}".encode(), mime="image/gif")
    return part(case(site, path, "an image that a page is shown with", (archive, 2008), made))


def links(site: Site) -> list[Ref]:
    """Add pages with links in every form."""
    images = [_image(site, name) for name in ("style-element", "inline", "small", "medium", "large", "wide", "in-svg")]
    images += [_image(site, name, "c") for name in ("object", "poster")]
    pages = ["refreshed.html", "framed.html", "based.html", "from-svg.html", "?query=only"]
    refs = (*images, part("/forms/base/embedded.css"), *(a(f"/forms/base/{page}") for page in pages))
    for page in pages:
        case(site, f"/forms/base/{page}", "a link of a form of its own", ("a", 2008), on("a", 2008))
    case(
        site,
        "/forms/base/embedded.css",
        "imported by a page",
        ("a", 2008),
        on("a", 2008, "p { margin: 0 }", mime="text/css"),
    )
    case(site, "/forms/", "links in every form", ("a", 2008), on("a", 2008, _FORMS, refs=refs))
    case(site, "/forms/commented.html", "listed, not linked: a comment", ("a", 2008), on("a", 2008))

    css = (part("/style/more.css"), part("/style/deep/deeper.css"), part("/fonts/town.woff2"), part("/fonts/town.ttf"))
    case(
        site,
        "/style/town.css",
        "a style sheet",
        ("a", 2009),
        on("a", 2009, _CSS, mime="text/css", refs=(*css, _image(site, "paper"))),
    )
    case(
        site,
        "/style/more.css",
        "an imported style sheet",
        ("b", 2009),
        on(
            "b",
            2009,
            "p { background: url(deep/pattern.gif) }",
            mime="text/css",
            refs=(part("/style/deep/pattern.gif"),),
        ),
    )
    case(
        site,
        "/style/deep/pattern.gif",
        "relative to its style sheet",
        ("c", 2009),
        on("c", 2009, b"GIF89a pattern", mime="image/gif"),
    )
    case(
        site,
        "/style/deep/deeper.css",
        "an imported style sheet",
        ("b", 2009),
        on("b", 2009, "b { top: 0 }", mime="text/css"),
    )
    for name in ("town.woff2", "town.ttf"):
        case(site, f"/fonts/{name}", "a font", ("c", 2009), on("c", 2009, f"font {name}".encode(), mime="font/x"))
    case(
        site,
        "/img/drawing.svg",
        "an SVG image",
        ("a", 2009),
        on("a", 2009, _SVG, mime="image/svg+xml", refs=(_image(site, "in-drawing"),)),
    )
    return [a("/forms/"), part("/style/town.css"), part("/img/drawing.svg"), *_charset(site)]  # fmt: skip


def _charset(site: Site) -> list[Ref]:
    """Add a windows-1251 page. As in browsers, paths are escaped as UTF-8 and queries as windows-1251."""
    path, query = "/cyrillic/страница.html", "имя=Мир"
    target = f"{quote(path)}?{quote(query.encode('cp1251'), safe='=')}"
    case(site, target, "linked in windows-1251", ("b", 2008), on("b", 2008))
    refs = (a(target, f"{ROOT.rstrip('/')}{target}"),)
    body = f'<html><title>Город</title><p>Привет, мир<a href="страница.html?{query}">Дальше</a></html>'.encode("cp1251")
    page = Held("a", "20080601000000", f"{ROOT}cyrillic/", body, "text/html; charset=windows-1251", refs=refs)
    case(site, "/cyrillic/", "a page in windows-1251", ("a", 2008), lambda _: page)
    return [a("/cyrillic/")]


def bodies(site: Site) -> list[Ref]:
    """Add bodies of all kinds."""
    noise = random.Random(2)  # noqa: S311
    text = html("A body that is long enough for pieces", text="<p>Many words</p>" * 40)
    for coding, archive in (("gzip", "a"), ("br", "b"), ("chunked", "c")):
        case(site, f"/bodies/{coding}.html", f"stored in {coding}", (archive, 2008),
             on(archive, 2008, text + coding.encode(), coding=coding))  # fmt: skip
    kinds = {"report.pdf": "application/pdf", "files.zip": "application/zip", "large.png": "image/png"}
    sizes = {"report.pdf": 5_000, "files.zip": 3_000, "large.png": 2_000_000}
    for name, mime in kinds.items():
        case(site, f"/bodies/{name}", "no page", ("a", 2010),
             on("a", 2010, mime.encode() + noise.randbytes(sizes[name]), mime=mime))  # fmt: skip
    pages = [a(f"/bodies/{name}") for name in ("gzip.html", "br.html", "chunked.html", "report.pdf", "files.zip")]
    return [*pages, part("/bodies/large.png")]


def lists(site: Site) -> list[Ref]:
    """Add a gzipped sitemap index named in robots.txt, and a feed."""
    index, sitemap = "/maps/index.xml.gz", "/maps/pages.xml.gz"
    robots = f"User-agent: *\nDisallow: /hidden/\nSitemap: {ROOT.rstrip('/')}{index}\n".encode()
    case(site, "/robots.txt", "says where the sitemap is", ("a", 2010),
         on("a", 2010, robots, mime="text/plain", refs=(Ref(f"{HOST}{index}", LIST, index),)))  # fmt: skip
    namespace = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    entry = f"<sitemap><loc>{ROOT[:-1]}{sitemap}</loc></sitemap>"
    of_maps = f'<?xml version="1.0"?><sitemapindex {namespace}>{entry}</sitemapindex>'
    case(site, index, "a packed sitemap index", ("b", 2010),
         on("b", 2010, gzip.compress(of_maps.encode(), mtime=0), mime="application/x-gzip",
            refs=(Ref(f"{HOST}{sitemap}", LIST, sitemap),)))  # fmt: skip
    hidden = [f"/hidden/{number}.html" for number in range(6)]
    entries = "".join(f"<url><loc>{ROOT[:-1]}{path}</loc></url>" for path in hidden)
    of_pages = f'<?xml version="1.0"?><urlset {namespace}>{entries}</urlset>'.encode()
    case(site, sitemap, "a packed sitemap", ("c", 2010),
         on("c", 2010, gzip.compress(of_pages, mtime=0), mime="application/x-gzip",
            refs=tuple(a(path) for path in hidden)))  # fmt: skip
    for number, path in enumerate(hidden):
        case(site, path, "only in the sitemap", ("abc"[number % 3], 2008), on("abc"[number % 3], 2008))
    news = [f"/news/{number}.html" for number in range(8)]
    items = "".join(f"<item><title>News</title><link>{ROOT[:-1]}{path}</link></item>" for path in news)
    channel = f"<channel><title>News</title><link>{ROOT}</link>{items}</channel>"
    feed = f'<?xml version="1.0"?><rss version="2.0">{channel}</rss>'
    case(site, "/feed.xml", "a feed", ("b", 2011),
         on("b", 2011, feed, mime="application/rss+xml", refs=(a("/", ROOT), *(a(path) for path in news))))  # fmt: skip
    for number, path in enumerate(news):
        case(site, path, "only in the feed", ("abc"[number % 3], 2009), on("abc"[number % 3], 2009))
    return [sitemap_link("/feed.xml")]


def shop(site: Site) -> list[Ref]:
    """Add a folder to start from; its pages have requisites and links outside of it."""
    goods = [a(f"/shop/{name}.html") for name in ("lamps", "ropes", "maps")]
    for number, ref in enumerate(goods):
        inner = (
            part("/shared/shop.css"),
            part("/shop/goods.gif"),
            a("/shop/", "./"),
            a("/news/0.html", "../news/0.html"),
        )
        case(site, f"/shop/{ref.name.rpartition('/')[2]}", "in a folder", ("abc"[number], 2010),
             on("abc"[number], 2010, refs=inner))  # fmt: skip
    case(site, "/shop/", "a folder to begin from", ("b", 2012), on("a", 2009, refs=tuple(goods[:2])),
         on("b", 2012, refs=tuple(goods)))  # fmt: skip
    case(site, "/shared/shop.css", "needed from outside of the folder", ("a", 2010),
         on("a", 2010, "p { left: 0 }", mime="text/css"))  # fmt: skip
    case(site, "/shop/goods.gif", "an image", ("c", 2010), on("c", 2010, b"GIF89a goods", mime="image/gif"))
    return [a("/shop/")]


_GALLERY = b"""<!doctype html><title>The gallery of the town</title><script src="/gallery/show.js"></script>
<script>var all = ["/gallery/1.jpg", "\\/gallery\\/2.jpg", "4.jpg", "/gallery/never.jpg"];
var more = "/gallery/artists.html";
var not_ours = "http://other.example/page.html"; var kind = "text/javascript"; show("/gallery/" + number);</script>
<noscript><p>The pictures of our painters are shown by a script, one after the other.</p></noscript>"""
_SHOW = (
    b"""function show(n) { var last = '/gallery/3.jpg', lost = "/gallery/never.html"; document.images[0].src = last }"""
)


def gallery(site: Site) -> list[Ref]:
    """Add a gallery whose images are only named in scripts; some never existed."""
    inline = [guess(f"/gallery/{name}") for name in ("1.jpg", "2.jpg", "never.jpg", "artists.html")]
    inline.append(guess("/gallery/4.jpg", "4.jpg"))
    script = (guess("/gallery/3.jpg"), guess("/gallery/never.html"))
    case(site, "/gallery/", "pictures in scripts", ("a", 2010),
         on("a", 2010, _GALLERY, refs=(part("/gallery/show.js"), *inline)))  # fmt: skip
    case(site, "/gallery/show.js", "names a picture", ("b", 2010),
         on("b", 2010, _SHOW, mime="application/javascript", refs=script))  # fmt: skip
    for number in range(1, 5):
        archive, body = "abc"[number % 3], b"\xff\xd8\xff picture %d" % number
        case(site, f"/gallery/{number}.jpg", "only in a script", (archive, 2009),
             on(archive, 2009, body, mime="image/jpeg"))  # fmt: skip
    case(site, "/gallery/artists.html", "a page that only a script names", ("c", 2010), on("c", 2010))
    for name in ("never.jpg", "never.html"):
        case(site, f"/gallery/{name}", "only a script names it, and no archive has it", None)
    return [a("/gallery/")]
