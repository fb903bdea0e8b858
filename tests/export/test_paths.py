"""Tests of the paths that addresses become: readable, legal, one for each, the same in whatever order they come."""

import random
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export.sample_recoveries import has_name
from unlost.export import PathAllocator, PathMapper, PathStyle, WrittenPaths, is_default_page
from unlost.uri import page_name

HOME = "lost.example"
BROWSE, WINDOWS, MIRROR = PathStyle(), PathStyle(windows=True), PathStyle(browsable=False)
STYLES = (BROWSE, WINDOWS, MIRROR, PathStyle(browsable=False, windows=True))
HTML, PNG = "text/html", "image/png"


def folded(path: str) -> str:
    """Return what is equal for paths that are one on systems without letter case and normal forms: not by our rule."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path.lower()).casefold())


def path_of(tail: str, mime: str | None = HTML, style: PathStyle = BROWSE) -> str:
    """Return the path of one resource that is alone."""
    return paths_of({f"http://{HOME}/{tail}": mime}, style)[f"http://{HOME}/{tail}"]


def paths_of(resources: dict[str, str | None], style: PathStyle = BROWSE) -> dict[str, str]:
    """Return the paths of resources by their addresses; of two with one name, that of the first."""
    paths = PathMapper(style, HOME)
    names: dict[str, str] = {}
    for uri in resources:
        names.setdefault(page_name(uri), uri)
    places = PathAllocator(
        paths.candidates(name, uri, resources[uri], is_default=is_default_page(name)) for name, uri in names.items()
    )
    return {uri: places.paths[name] for name, uri in names.items()}


@pytest.mark.parametrize(
    ("tail", "mime", "path"),
    [
        ("", HTML, "index.html"),
        ("bar/hello.html", HTML, "bar/hello.html"),
        ("bar/", HTML, "bar/index.html"),
        ("bar/", None, "bar/index.html"),
        ("bar", HTML, "bar.html"),
        ("page.php", HTML, "page.php.html"),
        ("page.php?id=1", HTML, "page.php-id=1.html"),
        ("?p=1", HTML, "index-p=1.html"),
        ("index.php", HTML, "index.html"),
        ("index.php?x", HTML, "index.php-x.html"),
        ("report.pdf", HTML, "report.pdf.html"),
        ("report.pdf", "application/pdf", "report.pdf"),
        ("logo.gif", PNG, "logo.gif.png"),
        ("logo", PNG, "logo.png"),
        ("LOGO.JPEG", "image/jpeg", "LOGO.JPEG"),
        ("wiki/File:Map.png", HTML, "wiki/File:Map.png.html"),
        ("style.css?v=3", "text/css", "style.css-v=3.css"),
        ("get.php?file=a/b.css", "text/css", "get.php-file=a%2Fb.css"),
        ("setup.exe", None, "setup.exe"),
        ("a.zip?x=1", None, "a.zip-x=1.zip"),
        ("data.php", None, "data.php.bin"),
        ("feed/", "application/xml", "feed/index.xml"),
        ("caf%C3%A9%20x.html", HTML, "café x.html"),
        ("caf%E9.html", HTML, "caf%E9.html"),
        ("100%25.html", HTML, "100%.html"),
        ("a%2Fb%5Cc%00.html", HTML, "a%2Fb%5Cc%00.html"),
        ("a/../../..//b/./c.html", HTML, "b/c.html"),
        ("%2e%2e/%2e%2e/etc/passwd", "text/plain", "etc/passwd"),
        ("..%2f..%2fetc%2fpasswd", "text/plain", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("..\\..\\b.html", HTML, "b.html"),
        (".htaccess", "text/plain", "%2Ehtaccess"),
        (".git/config", "text/plain", "%2Egit/config"),
        (".well-known/security.txt", "text/plain", ".well-known/security.txt"),
        ("_redirects", "text/plain", "%5Fredirects"),
        ("_worker.js", "text/javascript", "%5Fworker.js"),
        ("CNAME", "text/plain", "%43NAME"),
        ("c:/a.html", HTML, "c%3A/a.html"),
        ("%E2%80%AEgnp.exe", None, "%E2%80%AEgnp.exe"),
        ("<script>alert(1)</script>.html", HTML, "%3Cscript%3Ealert(1)%3C/script%3E.html"),
        ("javascript:alert(1)", HTML, "javascript:alert(1).html"),
    ],
)
def test_addresses_become_names_that_people_can_read(tail: str, mime: str | None, path: str) -> None:
    """Endings tell the type, queries stay readable, and nothing in a name leads elsewhere or does harm."""
    assert path_of(tail, mime) == path


@pytest.mark.parametrize(
    ("tail", "path"),
    [
        ("bar/hello.php?a=1|2", "lost.example/bar/hello.php?a=1|2"),
        ("bar/", "lost.example/bar/index.html"),
        ("bar", "lost.example/bar"),
    ],
)
def test_a_mirror_has_the_names_of_addresses(tail: str, path: str) -> None:
    """Without rewriting, host, path and query are the name."""
    assert path_of(tail, HTML, MIRROR) == path


@pytest.mark.parametrize(
    ("tail", "path"),
    [
        ("a.php?x=1|2:3", "a.php@x=1%7C2+3.html"),
        ("CON", "CON_.html"),
        ("nul.tar.html", "nul_.tar.html"),
        ("lpt1.html", "lpt1_.html"),
        ("com%C2%B9.html", "com¹_.html"),
        ("a.%20./b.", "a%2E%20%2E/b..html"),
        ("a*b%22c.html", "a%2Ab%22c.html"),
    ],
)
def test_names_for_windows(tail: str, path: str) -> None:
    """No letter, device or ending that Windows refuses is left."""
    assert path_of(tail, HTML, WINDOWS) == path


def test_hosts() -> None:
    """The pages of the site's own host are at the top, those of others in a folder with their name."""
    uris: dict[str, str | None] = {"http://www.lost.example/a.html": HTML, "http://cdn.example:8080/b.png": PNG}
    assert list(paths_of(uris).values()) == ["a.html", "cdn.example+8080/b.png"]
    assert list(paths_of(uris, MIRROR).values()) == ["lost.example/a.html", "cdn.example:8080/b.png"]


def test_a_file_and_a_folder_of_one_name() -> None:
    """The file goes into the folder."""
    found = paths_of({"http://lost.example/a": PNG, "http://lost.example/a.png/b": HTML}, BROWSE)
    assert list(found.values()) == ["a.png/index.png", "a.png/b.html"]
    found = paths_of({"http://lost.example/a": HTML, "http://lost.example/a/b": HTML}, MIRROR)
    assert list(found.values()) == ["lost.example/a/index.html", "lost.example/a/b"]


def test_who_is_called_so_keeps_the_name() -> None:
    """A page that needs an ending does not take the name of one that has it."""
    found = paths_of({"http://lost.example/page": HTML, "http://lost.example/page.html": HTML})
    assert found["http://lost.example/page.html"] == "page.html"
    assert re.fullmatch(r"page~[0-9a-f]{12}\.html", found["http://lost.example/page"])


def test_letter_case_and_normal_forms() -> None:
    """Names that are one on some systems are told apart on all."""
    tails = ("A.html", "a.html", "caf%C3%A9.html", "cafe%CC%81.html", "CAF%C3%89.html")
    found = paths_of({f"http://lost.example/{tail}": HTML for tail in tails})
    assert len({folded(path) for path in found.values()}) == len(tails)


def test_two_default_pages() -> None:
    """One is the folder's page, the other keeps its own name."""
    found = paths_of({"http://lost.example/index.php": HTML, "http://lost.example/default.asp": HTML})
    assert sorted(found.values()) == ["index.html", "index.php.html"] or sorted(found.values()) == [
        "default.asp.html",
        "index.html",
    ]


def test_long_names_are_cut_and_stay_apart() -> None:
    """Of names of more than 255 bytes, and of paths that are too long, a digest tells which they are."""
    long = "é" * 200
    tails = (f"{long}a.html", f"{long}b.html", "/".join(["folder"] * 300) + "/a.html")
    for style in STYLES:
        found = paths_of({f"http://lost.example/{tail}": HTML for tail in tails}, style)
        assert len(set(found.values())) == 3
        assert all(path.endswith(".html") for path in found.values())
        assert path_of(tails[0], HTML, style) == found[f"http://lost.example/{tails[0]}"]


# Addresses that are likely to want the same, and addresses of anything.
_names = st.sampled_from(
    ["a", "A", "b", "a.html", "A.HTML", "a.php", "index.html", "index", "index.php", "index.png", "%C3%A9", "e%CC%81",
     "CON", "nul.txt", "..", ".", "", "%2e%2e", "%FF", "a%00", "a%2Fb", "x" * 260, "x" * 300, "x. ", ".git",
     "_nginx", "c:"]
) | st.text(max_size=12)  # fmt: skip
_tails = st.builds(
    lambda names, query: "/".join(names) + query,
    st.lists(_names, max_size=5),
    st.sampled_from(["", "?", "?a", "?a/b", "?A"]) | st.text(max_size=8).map("?{}".format),
)
_uris = st.builds("http://{}/{}".format, st.sampled_from(["lost.example", "cdn.example", "cdn.example:81"]), _tails)
_types = st.sampled_from([None, HTML, PNG, "text/plain", "text/css", "application/xhtml+xml", "application/x-what"])
_sites = st.dictionaries(_uris.filter(has_name), _types, min_size=1, max_size=25)
_DEVICE = re.compile(r"(CON|PRN|AUX|NUL|COM\d|LPT\d)(\.|$)", re.IGNORECASE)


@given(_sites, st.sampled_from(STYLES), st.randoms(use_true_random=False))
def test_every_resource_has_a_path_of_its_own(
    resources: dict[str, str | None], style: PathStyle, drawn: random.Random
) -> None:
    """No two share one on any file system, none is a folder of another, all are legal, and order does not matter."""
    found = paths_of(resources, style)
    paths = list(found.values())
    assert len({folded(path) for path in paths}) == len(paths)
    taken = WrittenPaths()
    for path in paths:
        taken.add(folded(path))
        assert len(path.encode()) <= 1000
        for name in path.split("/"):
            check_name(name, style)
    # Which of two spellings of one page comes first is not chosen here.
    again = list(found)
    drawn.shuffle(again)
    assert paths_of({uri: resources[uri] for uri in again}, style) == found


def check_name(name: str, style: PathStyle) -> None:
    """Check that a file or a folder may be called so."""
    assert name not in ("", ".", "..")
    assert len(name.encode()) <= 255
    assert name.isprintable()
    assert not set(name) & set('/\\\0<>"')
    assert not name.startswith(".") or name == ".well-known"
    assert not any(unicodedata.bidirectional(char) in ("RLO", "LRO", "RLE", "RLI") for char in name)
    if style.browsable:
        assert "?" not in name
    if style.windows:
        assert not set(name) & set('?|:*<>"')
        assert not name.endswith((".", " "))
        assert not _DEVICE.match(name)


@given(_sites, _uris.filter(has_name), st.booleans())
def test_what_is_missing_never_has_the_path_of_another(
    resources: dict[str, str | None], uri: str, is_page: bool
) -> None:
    """A link to something that was not recovered does not lead to something that was."""
    names = {page_name(each): each for each in resources}
    if page_name(uri) in names:
        return
    paths = PathMapper(BROWSE, HOME)
    places = PathAllocator(paths.candidates(name, each, resources[each]) for name, each in names.items())
    path = places.free_path(paths.candidates_for_missing(page_name(uri), uri, is_page=is_page))
    assert folded(path) not in {folded(each) for each in places.paths.values()}
    for name in path.split("/"):
        check_name(name, BROWSE)
