"""Special cases of the reference site: each resource tests one rule for choosing a capture.

`WINS` has the expected archive and year for each, written by hand; None for missing ones. `expected.py` must agree.
"""

import random
from collections.abc import Callable
from urllib.parse import quote

from tests.recovery.site import HOST, ROOT, Held, Ref, Site, a, bare, html, part

CaptureFactory = Callable[[str], Held]
WINS: dict[str, tuple[str, int] | None] = {}

ELSEWHERE = "http://elsewhere.example/"


def on(archive: str, year: int, body: str | bytes = "", *, uri: str | None = None, **more: object) -> CaptureFactory:
    """Return a factory for a capture on 1 June; its body is unique unless given."""

    def make(path: str) -> Held:
        text = body.encode() if isinstance(body, str) else body
        refs = more.get("refs", ())
        content = text or html(f"{path} of {year} in {archive}", *refs)  # type: ignore[misc]
        place = uri or ROOT.rstrip("/") + quote(path, safe="/%?&=:+~")
        return Held(archive, f"{year}0601000000", place, content, **more)  # type: ignore[arg-type]

    return make


def bad(archive: str, year: int, status: int, *, uri: str | None = None, location: str | None = None) -> CaptureFactory:
    """Return a factory for a capture with an error or redirect status."""

    def make(path: str) -> Held:
        target = None
        if location is not None and not location.startswith(ELSEWHERE):
            target = bare(f"{HOST}{location}" if location.startswith("/") else location)
        content = b"" if status == 200 else b"an error"
        place = uri or ROOT.rstrip("/") + path
        return Held(archive, f"{year}0601000000", place, content, status=status, location=location, target=target)

    return make


def case(
    site: Site, path: str, what: str, wins: tuple[str, int] | None, *made: CaptureFactory, also: tuple[str, ...] = ()
) -> str:
    """Add a case and return its path. also: further paths of the same resource."""
    name = bare(f"{HOST}{path}")
    site.add(name, *(make(path) for make in made), case=what, also=tuple(f"{HOST}{each}" for each in also))
    WINS[name] = wins
    return path


def revisit(archive: str, year: int, of: str, since: int, body: bytes) -> CaptureFactory:
    """Return a factory for a revisit record whose original has another URL and year."""

    def make(path: str) -> Held:
        original = (ROOT.rstrip("/") + of, f"{since}0601000000")
        return Held(archive, f"{year}0601000000", ROOT.rstrip("/") + path, body, revisit_of=original)

    return make


_REJECTED_PAGES = {
    "soft-404": "<title>Page not found</title><h1>Page not found</h1><p>Sorry, {path} does not exist any more.</p>",
    "parked": "<title>lost.example</title><h1>This domain is for sale</h1><p>Make an offer</p>",
    "login-wall": "<title>Sign in</title><h1>Please sign in</h1><p>You must be logged in to view this page.</p>"
    "<form>User name <input name=u> Password <input type=password name=p></form>",
    "consent-wall": "<title>Just a moment...</title><h1>Checking your browser</h1><p>Please enable JavaScript and"
    " cookies to continue.</p>",
}
"""Soft 404s and parked pages; each links to a page that must not be enqueued."""


def rejected_capture(archive: str, year: int, rejected: str) -> CaptureFactory:
    """Return a factory for a capture with status 200 that is a soft 404 or parked page."""

    def make(path: str) -> Held:
        text = _REJECTED_PAGES[rejected].format(path=path) + f"<p><a href='/special/spam.html'>{year}</a></p>"
        return Held(archive, f"{year}0601000000", ROOT.rstrip("/") + path, text.encode(), rejected=rejected)

    return make


def ranking_cases(site: Site) -> list[Ref]:
    """Add cases for ranking captures."""
    same, seal = html("the same as before"), b"\x89PNG\r\n\x1a\n" + b"seal" * 30
    moved_to = "/special/new-name.html"
    cases = [
        case(site, "/special/gone.html", "the last capture is a 404", ("a", 2008), on("a", 2008), bad("b", 2012, 404)),
        case(site, "/special/left.html", "the last capture leads to another site", ("b", 2007), on("b", 2007),
             bad("b", 2012, 302, location=ELSEWHERE)),
        case(site, "/special/empty.html", "the last capture is empty", ("c", 2006), on("c", 2006), on("a", 2005),
             bad("c", 2012, 200)),
        case(site, "/special/busy.html", "the last capture is a 503", ("a", 2009), on("a", 2009), bad("a", 2010, 503),
             bad("b", 2011, 503), bad("c", 2012, 503)),
        case(site, "/special/only-404.html", "there are only errors", None, bad("a", 2009, 404), bad("b", 2010, 404)),
        case(site, "/special/soft.html", "the last captures say that there is no page", ("c", 2007), on("c", 2007),
             rejected_capture("b", 2011, "soft-404"), rejected_capture("a", 2012, "soft-404"), bad("c", 2013, 404)),
        case(site, "/special/parked.html", "the last capture is of a parked domain", ("a", 2009), on("a", 2009),
             on("b", 2005), rejected_capture("b", 2012, "parked")),
        case(site, "/special/walls.html", "the last captures are walls", ("b", 2008), on("b", 2008),
             rejected_capture("a", 2010, "login-wall"), rejected_capture("c", 2012, "consent-wall")),
        case(site, "/special/only-parked.html", "there are only captures of a parked domain", None,
             rejected_capture("a", 2011, "parked"), rejected_capture("c", 2012, "parked")),
        case(site, "/special/slash/", "a redirect to itself with a slash", ("a", 2008), on("a", 2008),
             bad("b", 2011, 301, uri=f"{ROOT}special/slash", location="/special/slash/")),
        case(site, "/special/secure.html", "a redirect to itself by https", ("a", 2008), on("a", 2008),
             bad("a", 2011, 301, location=f"https://{HOST}/special/secure.html")),
        case(site, "/special/old-name.html", "a redirect within the site", ("a", 2010),
             bad("a", 2010, 301, location=moved_to)),
        case(site, "/special/again.html", "a revisit record", ("a", 2011), on("a", 2008, same),
             revisit("a", 2011, "/special/again.html", 2008, same)),
        case(site, "/special/again-elsewhere.html", "a revisit of another URL", ("a", 2012),
             revisit("a", 2012, "/special/again.html", 2008, same)),
        case(site, "/special/only-b.html", "only one archive has it", ("b", 2006), on("b", 2006)),
        case(site, "/special/only-c.html", "only one archive has it", ("c", 2006), on("c", 2006)),
        case(site, "/special/all.html", "all have it, of other dates", ("b", 2012), on("a", 2010), on("b", 2012),
             on("c", 2011)),
        case(site, "/special/same-everywhere.html", "one payload in all archives", ("c", 2012), on("a", 2010, "<p>one"),
             on("b", 2011, "<p>one"), on("c", 2012, "<p>one")),
        case(site, "/special/cut.html", "the last capture comes cut off", ("b", 2007),
             on("a", 2012, random.Random(3).randbytes(120_000), damaged="cut"), on("b", 2007)),  # noqa: S311
        case(site, "/special/1993.html", "a date before there were archives", ("b", 1993), on("b", 1993)),
        case(site, "/special/2037.html", "a date that is not yet", ("c", 2037), on("c", 2037), on("c", 2003)),
    ]  # fmt: skip
    case(site, "/special/spam.html", "only what is rejected leads to it", ("a", 2012), on("a", 2012))
    case(site, moved_to, "only a redirect leads to it", ("b", 2010), on("b", 2010))
    case(site, "/img/seal.png", "one payload at two addresses", ("a", 2009), on("a", 2009, seal, mime="image/png"))
    case(site, "/img/seal-copy.png", "one payload at two addresses", ("b", 2010), on("b", 2010, seal, mime="image/png"))
    # As of 2010, the page is that of 2008, and so is its image, although another is closer to 2010.
    case(site, "/special/dated.html", "requisites close to their page", ("a", 2008),
         on("a", 2008, refs=(part("/img/dated.gif"),)))  # fmt: skip
    case(site, "/img/dated.gif", "requisites close to their page", ("b", 2011),
         on("a", 2007, b"GIF89a of 2007", mime="image/gif"),
         on("b", 2011, b"GIF89a of 2011", mime="image/gif"))  # fmt: skip
    return [*(a(each) for each in cases), part("/img/seal.png"), part("/img/seal-copy.png"), a("/special/dated.html")]


def spelling_cases(site: Site) -> list[Ref]:
    """Add cases for spellings of URLs."""
    session = "PHPSESSID=0123456789abcdef0123456789abcdef"
    www = f"http://www.{HOST}"
    case(site, "/special/www.html", "listed with www", ("a", 2008), on("a", 2008, uri=f"{www}/special/www.html"))
    case(
        site,
        "/special/both.html",
        "listed with and without www",
        ("b", 2010),
        on("a", 2008),
        on("b", 2010, uri=f"{www}/special/both.html"),
    )
    case(
        site,
        "/special/https.html",
        "listed as https",
        ("c", 2008),
        on("c", 2008, uri=f"https://{HOST}/special/https.html"),
    )
    case(site, "/special/harbour.html", "linked in another letter case", ("a", 2008), on("a", 2008))
    case(site, "/special/Twin.html", "two that differ in letter case", ("a", 2008), on("a", 2008))
    case(site, "/special/twin.html", "two that differ in letter case", ("b", 2009), on("b", 2009))
    case(site, "/special/dir/", "linked without its slash", ("a", 2008), on("a", 2008))
    case(
        site,
        "/special/root",
        "linked as a folder, listed as its index.php",
        ("b", 2008),
        on("b", 2008, uri=f"{ROOT}special/root/index.php"),
        also=("/special/root/index.php",),
    )
    case(
        site,
        "/special/folder/",
        "linked as index.html, listed as a folder",
        ("c", 2008),
        on("c", 2008),
        also=("/special/folder/index.html",),
    )
    case(
        site,
        "/special/a%20b.html",
        "a space",
        ("a", 2008),
        on("a", 2008),
        also=("/special/a+b.html", "/special/a b.html"),
    )
    case(
        site,
        "/special/%7Etilde.html",
        "an escape that need not be",
        ("a", 2008),
        on("a", 2008),
        also=("/special/~tilde.html",),
    )
    case(site, "/special/caf%C3%A9.html", "not ASCII", ("b", 2008), on("b", 2008), also=("/special/café.html",))
    case(site, "/special/session.html?x=1", "a session id in the link", ("a", 2008), on("a", 2008))
    case(site, "/special/query.html?a=1&b=2", "an ampersand", ("a", 2008), on("a", 2008))
    case(site, "/special/list.html?page=1", "a query", ("a", 2008), on("a", 2008))
    case(site, "/special/list.html?page=2", "a query", ("b", 2009), on("b", 2009))
    case(site, "/special/list.html", "the same without its query", ("c", 2010), on("c", 2010))
    return [
        a("/special/www.html"), a("/special/both.html", f"{www}/special/both.html"), a("/special/https.html"),
        a("/special/harbour.html", "/Special/Harbour.HTML"), a("/special/Twin.html"), a("/special/twin.html"),
        a("/special/dir"), a("/special/root"), a("/special/root", "/special/root/"),
        a("/special/folder", "/special/folder/index.html"), a("/special/a%20b.html", "/special/a b.html"),
        a("/special/%7Etilde.html", "/special/~tilde.html"), a("/special/caf%C3%A9.html", "/special/café.html"),
        a("/special/session.html?x=1", f"/special/session.html?x=1&{session}"),
        a("/special/query.html?a=1&b=2"), a("/special/query.html?a=1&b=2", "query.html?a=1&b=2#part"),
        a("/special/list.html?page=1"), a("/special/list.html?page=2"), a("/special/list.html"),
    ]  # fmt: skip


def out_of_scope_cases(site: Site) -> list[Ref]:
    """Add resources out of scope, in no archive, and without links."""
    for path in ("/special/nowhere.html", "/img/nowhere.gif", "/special/nowhere.html?x=1"):
        case(site, path, "archived nowhere", None)
    for number in range(5):
        path = f"/forgotten/{number}.html"
        case(site, path, "listed, not linked", ("abc"[number % 3], 2005 + number), on("abc"[number % 3], 2005 + number))
    site.add(
        "other.example/page.html", Held("a", "20080601000000", "http://other.example/page.html", b"<p>another site")
    )
    site.add(f"{HOST}.evil.example", Held("a", "20080601000000", f"http://{HOST}.evil.example/", b"<p>no part of it"))
    other_hosts = [
        Held("a", "20080601000000", "http://static.example/far.css", b"p { background: url(far.gif) }", "text/css",
             refs=(part("static.example/far.gif", "far.gif"),)),
        Held("b", "20080601000000", "http://static.example/far.gif", b"GIF89a far", "image/gif"),
        Held("c", "20080601000000", f"http://blog.{HOST}/badge.gif", b"GIF89a badge", "image/gif"),
        Held("b", "20090601000000", f"http://blog.{HOST}/", html("Blog", a(f"blog.{HOST}/post.html", "/post.html")),
             refs=(a(f"blog.{HOST}/post.html", "/post.html"),)),
        Held("c", "20090601000000", f"http://blog.{HOST}/post.html", b"<p>A post</p>"),
    ]  # fmt: skip
    for held in other_hosts:
        site.add(bare(held.uri), held, case="another host")
    return [
        a("/special/nowhere.html"), part("/img/nowhere.gif"), a("/special/nowhere.html?x=1"),
        a("other.example/page.html", "http://other.example/page.html"), a(f"{HOST}.evil.example", f"http://{HOST}.evil.example/"),
        part("static.example/far.css", "http://static.example/far.css"),
        part(f"blog.{HOST}/badge.gif", f"http://blog.{HOST}/badge.gif"), a(f"blog.{HOST}", f"http://blog.{HOST}/"),
    ]  # fmt: skip
