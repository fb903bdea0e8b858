"""Tests of export paths: readable, valid, unique, and independent of order."""

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


def collision_key(path: str) -> str:
    """Return a key that is equal for paths that collide on case-insensitive or normalising file systems."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path.lower()).casefold())


def path_of(tail: str, mime: str | None = HTML, style: PathStyle = BROWSE) -> str:
    """Return the path of a single resource."""
    return paths_of({f"http://{HOME}/{tail}": mime}, style)[f"http://{HOME}/{tail}"]


def paths_of(resources: dict[str, str | None], style: PathStyle = BROWSE) -> dict[str, str]:
    """Return the paths of resources by URL; of two with one name, that of the first."""
    paths = PathMapper(style, HOME)
    names: dict[str, str] = {}
    for uri in resources:
        names.setdefault(page_name(uri), uri)
    allocator = PathAllocator(
        paths.candidates(name, uri, resources[uri], is_default=is_default_page(name)) for name, uri in names.items()
    )
    return {uri: allocator.paths[name] for name, uri in names.items()}


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
def test_urls_become_readable_paths(tail: str, mime: str | None, path: str) -> None:
    """Extensions show the type, queries stay readable, and no name escapes from the folder."""
    assert path_of(tail, mime) == path


@pytest.mark.parametrize(
    ("tail", "path"),
    [
        ("bar/hello.php?a=1|2", "lost.example/bar/hello.php?a=1|2"),
        ("bar/", "lost.example/bar/index.html"),
        ("bar", "lost.example/bar"),
    ],
)
def test_mirror_paths_equal_urls(tail: str, path: str) -> None:
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
def test_windows_paths_are_valid(tail: str, path: str) -> None:
    """Invalid characters, device names and endings are replaced."""
    assert path_of(tail, HTML, WINDOWS) == path


def test_other_hosts_have_their_own_folders() -> None:
    """Pages of the site's own host are at the top level."""
    uris: dict[str, str | None] = {"http://www.lost.example/a.html": HTML, "http://cdn.example:8080/b.png": PNG}
    assert list(paths_of(uris).values()) == ["a.html", "cdn.example+8080/b.png"]
    assert list(paths_of(uris, MIRROR).values()) == ["lost.example/a.html", "cdn.example:8080/b.png"]


def test_file_with_the_name_of_a_folder_is_its_index() -> None:
    """The file is written into the folder."""
    found = paths_of({"http://lost.example/a": PNG, "http://lost.example/a.png/b": HTML}, BROWSE)
    assert list(found.values()) == ["a.png/index.png", "a.png/b.html"]
    found = paths_of({"http://lost.example/a": HTML, "http://lost.example/a/b": HTML}, MIRROR)
    assert list(found.values()) == ["lost.example/a/index.html", "lost.example/a/b"]


def test_exact_name_has_precedence() -> None:
    """A page without an extension does not take the name of one that has it."""
    found = paths_of({"http://lost.example/page": HTML, "http://lost.example/page.html": HTML})
    assert found["http://lost.example/page.html"] == "page.html"
    assert re.fullmatch(r"page~[0-9a-f]{12}\.html", found["http://lost.example/page"])


def test_colliding_names_are_distinguished() -> None:
    """Names that collide on some file systems are distinguished on all."""
    tails = ("A.html", "a.html", "caf%C3%A9.html", "cafe%CC%81.html", "CAF%C3%89.html")
    found = paths_of({f"http://lost.example/{tail}": HTML for tail in tails})
    assert len({collision_key(path) for path in found.values()}) == len(tails)


def test_two_default_pages_have_different_paths() -> None:
    """One is the index of the folder, the other has its own name."""
    found = paths_of({"http://lost.example/index.php": HTML, "http://lost.example/default.asp": HTML})
    assert sorted(found.values()) == ["index.html", "index.php.html"] or sorted(found.values()) == [
        "default.asp.html",
        "index.html",
    ]


def test_long_names_are_truncated_and_unique() -> None:
    """Long names and paths are distinguished by a digest."""
    long = "é" * 200
    tails = (f"{long}a.html", f"{long}b.html", "/".join(["folder"] * 300) + "/a.html")
    for style in STYLES:
        found = paths_of({f"http://lost.example/{tail}": HTML for tail in tails}, style)
        assert len(set(found.values())) == 3
        assert all(path.endswith(".html") for path in found.values())
        assert path_of(tails[0], HTML, style) == found[f"http://lost.example/{tails[0]}"]


# URLs that are likely to collide, and arbitrary ones.
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
def test_paths_are_unique_valid_and_independent_of_order(
    resources: dict[str, str | None], style: PathStyle, drawn: random.Random
) -> None:
    """No path equals or contains another on any file system."""
    found = paths_of(resources, style)
    paths = list(found.values())
    assert len({collision_key(path) for path in paths}) == len(paths)
    taken = WrittenPaths()
    for path in paths:
        taken.add(collision_key(path))
        assert len(path.encode()) <= 1000
        for name in path.split("/"):
            assert_valid_name(name, style)
    # Which of two spellings comes first is not decided here.
    again = list(found)
    drawn.shuffle(again)
    assert paths_of({uri: resources[uri] for uri in again}, style) == found


def assert_valid_name(name: str, style: PathStyle) -> None:
    """Assert that a file or folder may have a name."""
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
def test_path_of_missing_resource_is_unique(resources: dict[str, str | None], uri: str, is_page: bool) -> None:
    """A link to a missing resource does not lead to a recovered one."""
    names = {page_name(each): each for each in resources}
    if page_name(uri) in names:
        return
    paths = PathMapper(BROWSE, HOME)
    allocator = PathAllocator(paths.candidates(name, each, resources[each]) for name, each in names.items())
    path = allocator.free_path(paths.candidates_for_missing(page_name(uri), uri, is_page=is_page))
    assert collision_key(path) not in {collision_key(each) for each in allocator.paths.values()}
    for name in path.split("/"):
        assert_valid_name(name, BROWSE)
