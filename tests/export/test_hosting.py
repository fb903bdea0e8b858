"""Old addresses, asked of real servers with the settings that an export has for them."""

import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.export import nasty_site
from tests.export.nasty_site import CIRCLES, FILES, REDIRECTS, REFUSED, STUB_RING, STUBS, Nasty, body
from tests.export.raw_http import ask, follow
from tests.neighbours import apache, nginx
from unlost.export import ExportedResource, escape_unsafe, hosting_files

SERVERS: dict[str, Callable[[Path, Path], AbstractContextManager[int]]] = {
    "nginx": nginx.hosting,
    "apache": apache.hosting,
}
COMPLAINTS = {"nginx": nginx.complaints, "apache": apache.complaints}
ASKED = [(each, old) for each in FILES for old in (each.old, *each.asked)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the nasty site and its settings."""
    folder = tmp_path_factory.mktemp("site")
    nasty_site.write(folder, hosting_files(nasty_site.placed()))
    return folder


@pytest.fixture(scope="module", params=SERVERS)
def port(request: pytest.FixtureRequest, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Host it."""
    with SERVERS[request.param](site, tmp_path_factory.mktemp("server")) as found:
        yield found


def content_type(each: Nasty) -> str | None:
    """Return what is to be said about a file."""
    return f"{each.mime}; charset={each.charset}" if each.charset else each.mime


@pytest.mark.parametrize(("each", "old"), ASKED, ids=[old[:40] for _, old in ASKED])
def test_an_old_address_gives_its_file(port: int, each: Nasty, old: str) -> None:
    """Its very bytes, with the type and the charset that it had; after one redirect where links demand it."""
    answer, redirects = follow(port, old)
    assert (answer.status, answer.body) == (200, body(each.path))
    if each.mime is not None:
        assert answer.headers["content-type"] == content_type(each)
    assert redirects <= 1


@pytest.mark.parametrize("old", REDIRECTS, ids=lambda old: old[:40])
def test_a_redirect_leads_where_it_led(port: int, old: str) -> None:
    """Within the site to the old address there, otherwise to the whole address; nothing gets out of its header."""
    answer = ask(port, old)
    here = f"http://lost.example:{port}", "http://lost.example"
    place = answer.headers["location"]
    for root in here:
        place = place.removeprefix(root)
    assert (answer.status, place) == (302, REDIRECTS[old][1])
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("old", [*CIRCLES, *REFUSED, "/js", "/lone%escape", "/page.php?id=3", "/PLAIN", "/nowhere"])
def test_what_cannot_work_is_no_harm(port: int, old: str) -> None:
    """It is an error of the visitor, not of the server, and never another page."""
    answer = ask(port, old)
    assert answer.status in (400, 403, 404, 414)
    assert b"This is" not in answer.body


@pytest.mark.parametrize("name", ["/.htaccess", "/_nginx/http.conf", "/_nginx/server.conf", "/_redirects", "/_headers"])
def test_settings_are_not_shown(port: int, name: str) -> None:
    """They are for servers, not for visitors."""
    assert ask(port, name).status in (403, 404)


@pytest.mark.parametrize("number", range(5))
def test_the_way_to_types_is_inside_only(port: int, number: int) -> None:
    """A visitor cannot ask for a file under the type that another one has."""
    for prefix in (".unlost-type-", ".unlost-type--"):
        assert ask(port, f"/{prefix}{number}/plain.html").status == 404


@pytest.mark.parametrize("old", STUBS)
def test_a_stub_is_a_redirect(port: int, old: str) -> None:
    """A page that does nothing but redirect is answered with 301; the file is there, too, for servers without rules."""
    path, _, expected = STUBS[old]
    answer = ask(port, old)
    location = answer.headers["location"]
    assert answer.status == 301
    assert location == expected or location.partition("://")[2].partition("/")[2] == expected[1:]
    if f"/{path}" != old:
        assert ask(port, f"/{path}").body == body(path)


@pytest.mark.parametrize("old", STUB_RING)
def test_stubs_that_lead_to_each_other_are_shown(port: int, old: str) -> None:
    """No browser goes round in a circle for them."""
    answer, _ = follow(port, old)
    assert (answer.status, answer.body) == (200, body(STUB_RING[old]))


def test_a_further_host_has_its_own_addresses(port: int) -> None:
    """They work where that host leads here too, and nowhere else."""
    answer = ask(port, "/pic?1", "img.other.example")
    assert (answer.status, answer.body) == (200, body("img.other.example/pic-1.jpg"))
    assert answer.headers["content-type"] == "image/jpeg"
    assert ask(port, "/pic?1").status == 404


def test_files_have_their_types_whatever_is_asked_of_them(port: int) -> None:
    """Also under the name of the file, and with a query that nobody knew."""
    for path, expected in [
        ("/lie.gif?new", "image/png"),
        ("/page.php-id=2.html", "text/html; charset=koi8-r"),
        ("/both/index.html", "text/html; charset=windows-1252"),
        ("/plain.html?utm_source=x", "text/html; charset=utf-8"),
    ]:
        answer = ask(port, path)
        assert (answer.status, answer.headers["content-type"]) == (200, expected)


def test_links_of_a_page_lead_where_they_must() -> None:
    """A page keeps its old address if its folder is the same there; otherwise there is a redirect, and for no image."""
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


def test_what_is_left_out_is_named(site: Path) -> None:
    """With its reason, in a comment of each file."""
    for name in ("_nginx/http.conf", ".htaccess", "_redirects"):
        comments = [line for line in (site / name).read_bytes().splitlines() if line.startswith(b"#")]
        for old, reason in REFUSED.items():
            found = [line for line in comments if old[:40].encode() in line]
            assert len(found) == 1
            assert reason.encode() in found[0]
        assert len([line for line in comments if line.endswith(b"(leads in a circle)")]) == len(CIRCLES)


def test_the_home_of_the_site_is_no_matter_of_numbers() -> None:
    """Its addresses hold for every host, also if most files came from another."""
    placed = [
        ExportedResource(f"http://cdn.example/{number}", f"cdn.example/{number}.gif", "image/gif")
        for number in range(5)
    ]
    placed.append(ExportedResource("http://a.example/x", "x.html", "text/html"))
    settings = hosting_files(placed, home="http://www.a.example/")["_nginx/http.conf"]
    assert b'    "/x" "/x.html";' in settings
    assert b'    "cdn.example/1" "/cdn.example/1.gif";' in settings
    assert b'    "a.example/x" "/x.html";' in hosting_files(placed)["_nginx/http.conf"]


def test_order_makes_no_difference() -> None:
    """The same resources give the same files."""
    placed = nasty_site.placed()
    files = hosting_files(placed)
    random.Random(5).shuffle(placed)  # noqa: S311
    assert hosting_files(placed) == files


def test_a_file_of_the_export_is_never_hidden() -> None:
    """An old address that is now that of another file gets no rule: links within the export lead to the file."""
    files = hosting_files(
        [
            ExportedResource("http://a.example/a.html", "a-2.html", "text/html"),
            ExportedResource("http://a.example/A.html?", "a.html", "text/html"),
        ]
    )
    assert b"(a file of the export has this address)" in files[".htaccess"]
    assert b'    "/a.html" ' not in files["_nginx/http.conf"]


def test_names_of_settings_are_reserved() -> None:
    """Every file that is written has a name that no file of the site gets."""
    for path in hosting_files(nasty_site.placed()):
        first = path.partition("/")[0]
        assert escape_unsafe(first) != first
        assert escape_unsafe(first.upper()) != first.upper()


def hostile(count: int) -> list[ExportedResource]:
    """Return random resources out of letters that mean something to somebody."""
    chance = random.Random(11)  # noqa: S311
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
        return "".join(
            chance.choice(letters if chance.random() < 0.9 else words) for _ in range(chance.randrange(longest))
        )

    found = []
    for number in range(count):
        host = chance.choice(["a.example", "www.a.example", "b.example", text(4)])
        uri = f"http://{host}/{text(12)}" + (f"?{text(12)}" if chance.random() < 0.5 else "")
        if chance.random() < 0.2:
            found.append(
                ExportedResource(
                    uri,
                    None,
                    redirect_target=chance.choice([f"http://a.example/{text(9)}", f"http://{text(9)}", text(9)]),
                )
            )
        else:
            name = text(9).replace("\0", "").replace("\ud800", "").strip("/") + str(number)
            found.append(
                ExportedResource(uri, name, chance.choice([None, "text/html", text(5)]), chance.choice([None, text(3)]))
            )
    return found


@pytest.mark.parametrize("server", COMPLAINTS)
def test_servers_take_what_20000_hostile_addresses_make(server: str, tmp_path: Path) -> None:
    """Nothing gets out of its rule, and the largest of sites can be hosted."""
    folder, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    for name, content in hosting_files(hostile(20_000)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    assert COMPLAINTS[server](folder, work) == ""


def test_every_line_of_a_hostile_site_is_a_rule() -> None:
    """Whatever an address is, each line has the form of its kind."""
    files = {
        name: content.decode("utf-8", "surrogateescape") for name, content in hosting_files(hostile(5_000)).items()
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
        odd = [line for line in files[name].split("\n") if line and not re.fullmatch(form, line, re.ASCII)]
        assert odd == [], name
