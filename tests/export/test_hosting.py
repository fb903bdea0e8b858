"""Tests of old URLs on real servers with the exported settings."""

import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.export import nasty_site
from tests.export.nasty_site import CIRCLES, FILES, REDIRECTS, REFUSED, STUB_RING, STUBS, NastyResource, body
from tests.export.raw_http import fetch, fetch_following_redirects
from tests.external import apache, nginx
from unlost.export import ExportedResource, escape_unsafe, hosting_files

SERVERS: dict[str, Callable[[Path, Path], AbstractContextManager[int]]] = {
    "nginx": nginx.host_site,
    "apache": apache.host_site,
}
CONFIG_ERRORS = {"nginx": nginx.config_errors, "apache": apache.config_errors}
OLD_URLS = [(each, old) for each in FILES for old in (each.old, *each.spellings)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the nasty site and its settings."""
    folder = tmp_path_factory.mktemp("site")
    nasty_site.write_site(folder, hosting_files(nasty_site.placed_resources()))
    return folder


@pytest.fixture(scope="module", params=SERVERS)
def port(request: pytest.FixtureRequest, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Serve it."""
    with SERVERS[request.param](site, tmp_path_factory.mktemp("server")) as found:
        yield found


def content_type(each: NastyResource) -> str | None:
    """Return the expected Content-Type of a file."""
    return f"{each.mime}; charset={each.charset}" if each.charset else each.mime


@pytest.mark.parametrize(("each", "old"), OLD_URLS, ids=[old[:40] for _, old in OLD_URLS])
def test_old_url_yields_its_file(port: int, each: NastyResource, old: str) -> None:
    """Bytes, type and charset are those of the capture, after at most one redirect."""
    response, redirects = fetch_following_redirects(port, old)
    assert (response.status, response.body) == (200, body(each.path))
    if each.mime is not None:
        assert response.headers["content-type"] == content_type(each)
    assert redirects <= 1


@pytest.mark.parametrize("old", REDIRECTS, ids=lambda old: old[:40])
def test_redirect_leads_to_its_original_target(port: int, old: str) -> None:
    """Within the site to the old URL, otherwise to the full URL, without header injection."""
    response = fetch(port, old)
    here = f"http://lost.example:{port}", "http://lost.example"
    location = response.headers["location"]
    for root in here:
        location = location.removeprefix(root)
    assert (response.status, location) == (302, REDIRECTS[old][1])
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("old", [*CIRCLES, *REFUSED, "/js", "/lone%escape", "/page.php?id=3", "/PLAIN", "/nowhere"])
def test_unsupported_urls_are_client_errors(port: int, old: str) -> None:
    """They yield a client error and never another page."""
    response = fetch(port, old)
    assert response.status in (400, 403, 404, 414)
    assert b"This is" not in response.body


@pytest.mark.parametrize("name", ["/.htaccess", "/_nginx/http.conf", "/_nginx/server.conf", "/_redirects", "/_headers"])
def test_settings_files_are_not_served(port: int, name: str) -> None:
    """Visitors cannot read them."""
    assert fetch(port, name).status in (403, 404)


@pytest.mark.parametrize("number", range(5))
def test_internal_type_prefixes_are_not_accessible(port: int, number: int) -> None:
    """Visitors cannot request a file with the type of another one."""
    for prefix in (".unlost-type-", ".unlost-type--"):
        assert fetch(port, f"/{prefix}{number}/plain.html").status == 404


@pytest.mark.parametrize("old", STUBS)
def test_redirect_stub_is_a_301(port: int, old: str) -> None:
    """The file exists, too, for servers without rules."""
    path, _, expected = STUBS[old]
    response = fetch(port, old)
    location = response.headers["location"]
    assert response.status == 301
    assert location == expected or location.partition("://")[2].partition("/")[2] == expected[1:]
    if f"/{path}" != old:
        assert fetch(port, f"/{path}").body == body(path)


@pytest.mark.parametrize("old", STUB_RING)
def test_circular_redirect_stubs_are_served_as_files(port: int, old: str) -> None:
    """They do not become circular redirects."""
    response, _ = fetch_following_redirects(port, old)
    assert (response.status, response.body) == (200, body(STUB_RING[old]))


def test_urls_of_another_host_work_on_that_host_only(port: int) -> None:
    """They are not served on the site's own host."""
    response = fetch(port, "/pic?1", "img.other.example")
    assert (response.status, response.body) == (200, body("img.other.example/pic-1.jpg"))
    assert response.headers["content-type"] == "image/jpeg"
    assert fetch(port, "/pic?1").status == 404


def test_files_have_their_types_under_any_url(port: int) -> None:
    """This holds for file names and for unknown queries."""
    for path, expected in [
        ("/lie.gif?new", "image/png"),
        ("/page.php-id=2.html", "text/html; charset=koi8-r"),
        ("/both/index.html", "text/html; charset=windows-1252"),
        ("/plain.html?utm_source=x", "text/html; charset=utf-8"),
    ]:
        response = fetch(port, path)
        assert (response.status, response.headers["content-type"]) == (200, expected)


def test_page_is_redirected_if_its_folder_differs() -> None:
    """A page is served at its old URL if relative links resolve equally; images need no redirect."""
    files = hosting_files(
        [
            ExportedResource("http://a.example/x?n=1", "x-1.html", "text/html", "utf-8"),
            ExportedResource("http://a.example/d", "d/index.html", "text/html", "utf-8"),
            ExportedResource("http://a.example/d/e/", "d/e.gif", "image/gif"),
        ]
    )
    lines = files["_redirects"].decode().splitlines()
    assert {line.split()[-1] for line in lines if line.startswith("/x")} == {"200!"}
    assert b'"/d" "301 /d/"' in files["_nginx/http.conf"]
    assert b'"/d/e/" "/d/e.gif"' in files["_nginx/http.conf"]
    untouched = hosting_files([ExportedResource("http://a.example/d", "d/index.html", "text/html")], rewritten=False)
    assert b'"/d" "/d/index.html"' in untouched["_nginx/http.conf"]


def test_unsupported_urls_are_listed_in_comments(site: Path) -> None:
    """Each settings file has a comment with the reason."""
    for name in ("_nginx/http.conf", ".htaccess", "_redirects"):
        comments = [line for line in (site / name).read_bytes().splitlines() if line.startswith(b"#")]
        for old, reason in REFUSED.items():
            found = [line for line in comments if old[:40].encode() in line]
            assert len(found) == 1
            assert reason.encode() in found[0]
        assert len([line for line in comments if line.endswith(b"(leads in a circle)")]) == len(CIRCLES)


def test_home_url_determines_the_main_host() -> None:
    """URLs of the main host hold for every host, even if most files are from another host."""
    placed = [
        ExportedResource(f"http://cdn.example/{number}", f"cdn.example/{number}.gif", "image/gif")
        for number in range(5)
    ]
    placed.append(ExportedResource("http://a.example/x", "x.html", "text/html"))
    settings = hosting_files(placed, home="http://www.a.example/")["_nginx/http.conf"]
    assert b'    "/x" "/x.html";' in settings
    assert b'    "cdn.example/1" "/cdn.example/1.gif";' in settings
    assert b'    "a.example/x" "/x.html";' in hosting_files(placed)["_nginx/http.conf"]


def test_settings_are_independent_of_input_order() -> None:
    """The same resources yield the same files."""
    placed = nasty_site.placed_resources()
    files = hosting_files(placed)
    random.Random(5).shuffle(placed)  # noqa: S311
    assert hosting_files(placed) == files


def test_old_url_does_not_hide_an_exported_file() -> None:
    """An old URL that is the path of another file gets no rule."""
    files = hosting_files(
        [
            ExportedResource("http://a.example/a.html", "a-2.html", "text/html"),
            ExportedResource("http://a.example/A.html?", "a.html", "text/html"),
        ]
    )
    assert b"(a file of the export has this address)" in files[".htaccess"]
    assert b'    "/a.html" ' not in files["_nginx/http.conf"]


def test_settings_file_names_are_reserved() -> None:
    """No file of the site gets the name of a settings file."""
    for path in hosting_files(nasty_site.placed_resources()):
        first = path.partition("/")[0]
        assert escape_unsafe(first) != first
        assert escape_unsafe(first.upper()) != first.upper()


def hostile_resources(count: int) -> list[ExportedResource]:
    """Return random resources with characters that are special in settings files."""
    rng = random.Random(11)  # noqa: S311
    letters = [
        *"ab/?&=;%$\\\"'{}()[]<>|^~*+.,:#!@-_ \t\r\n\0`é€\ud800",
        "%00",
        "%0A",
        "%2F",
        "%22",
        "${x}",
        "%{x}",
        "\\\n",
    ]
    words = [
        "}\n",
        '";',
        "server",
        "include",
        "RewriteRule",
        "</FilesMatch>",
        "[L]",
        "../",
        "//",
        "$1",
        "%1",
        "x" * 300,
    ]

    def text(longest: int) -> str:
        return "".join(rng.choice(letters if rng.random() < 0.9 else words) for _ in range(rng.randrange(longest)))

    found = []
    for number in range(count):
        host = rng.choice(["a.example", "www.a.example", "b.example", text(4)])
        uri = f"http://{host}/{text(12)}" + (f"?{text(12)}" if rng.random() < 0.5 else "")
        if rng.random() < 0.2:
            found.append(
                ExportedResource(
                    uri,
                    None,
                    redirect_target=rng.choice([f"http://a.example/{text(9)}", f"http://{text(9)}", text(9)]),
                )
            )
        else:
            name = text(9).replace("\0", "").replace("\ud800", "").strip("/") + str(number)
            found.append(
                ExportedResource(uri, name, rng.choice([None, "text/html", text(5)]), rng.choice([None, text(3)]))
            )
    return found


@pytest.mark.parametrize("server", CONFIG_ERRORS)
def test_servers_accept_settings_for_20000_hostile_urls(server: str, tmp_path: Path) -> None:
    """No URL escapes from its rule, and large sites can be hosted."""
    folder, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    for name, content in hosting_files(hostile_resources(20_000)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    assert CONFIG_ERRORS[server](folder, work) == ""


def test_every_settings_line_for_hostile_urls_is_valid() -> None:
    """Whatever the URL, each line has the form of its kind."""
    files = {
        name: content.decode("utf-8", "surrogateescape")
        for name, content in hosting_files(hostile_resources(5_000)).items()
    }
    forms = {
        ".htaccess": r"#[^\\]*|DirectoryIndex index\.html|AddDefaultCharset Off|</?FilesMatch.*"
        r"|    SetHandler default-handler"
        r'|AddType "[\w/;= .+:-]+" \.[\w-]+|RewriteEngine On|RewriteBase /'
        r'|RewriteCond %\{(QUERY_STRING|HTTP_HOST)\} "\^[^"%$ ]*\\z"( \[NC\])?'
        r'|RewriteRule (\^\(\?:_nginx\S*|"!?\^[^"%$ ]*\\z") ("([^"%$\\ ]|\\%)*"|-) ("?\[[\w=,/;. :+-]+\]"?)',
        "_redirects": r"#.*|(http://[\w.-]+)?/[\w%./~-]*( [\w.~-]+=[\w.~-]+)* (/|https?://)[!-~]* (200|301|302)!",
        "_headers": r"#.*|/[\w%./~-]*|  Content-Type: [\w/;= .+:-]+",
    }
    for name, form in forms.items():
        invalid = [line for line in files[name].split("\n") if line and not re.fullmatch(form, line, re.ASCII)]
        assert invalid == [], name
