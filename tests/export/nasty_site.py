"""A small site with hostile names and URLs, as an export places it."""

from pathlib import Path
from typing import NamedTuple

from unlost.export import ExportedResource

HOST = "http://www.lost.example"
IMAGE = "http://img.other.example"


class NastyResource(NamedTuple):
    """A resource. old: original URL; path: path of its file; spellings: other spellings of the URL."""

    old: str
    path: str
    mime: str | None = "text/html"
    charset: str | None = None
    spellings: tuple[str, ...] = ()


FILES = [
    NastyResource("/", "index.html", charset="utf-8"),
    NastyResource("/plain.html", "plain.html", charset="utf-8"),
    NastyResource("/latin.html", "latin.html", charset="windows-1252"),
    NastyResource("/undeclared.html", "undeclared.html"),
    NastyResource("/page.php", "page.php.html", charset="utf-8"),
    NastyResource("/page.php?id=1", "page.php-id=1.html", charset="utf-8"),
    NastyResource("/page.php?id=2", "page.php-id=2.html", charset="koi8-r"),
    NastyResource("/page.php?id=10&x=a%20b", "page.php-id=10&x=a b.html", charset="utf-8"),
    NastyResource("/page.php?x=+;y", "page.php-x=+;y.html", charset="utf-8"),
    NastyResource(
        "/page.php?x='\"<>", "page.php-quotes.html", charset="utf-8", spellings=("/page.php?x=%27%22%3C%3E",)
    ),
    NastyResource("/page.php?x=%c3%a9", "page.php-x=é.html", charset="utf-8", spellings=("/page.php?x=%C3%A9",)),
    NastyResource("/page.php?u=http://a.example/?b", "page.php-u.html", charset="utf-8"),
    NastyResource("/page.php?x=$1%1%{HTTP_HOST}${x}", "page.php-vars.html", charset="utf-8"),
    NastyResource("/page.php?x=\\", "page.php-back.html", charset="utf-8"),
    NastyResource("/page.php?x=(a|b)*.{2}[c]^$", "page.php-regex.html", charset="utf-8"),
    NastyResource("/page.php?;}}server{", "page.php-server.html", charset="utf-8"),
    NastyResource("/search?q", "search-q.html", charset="utf-8"),
    NastyResource("/folder", "folder/index.html", charset="utf-8"),
    NastyResource("/folder/inside.html", "folder/inside.html", charset="utf-8"),
    NastyResource("/both/", "both/index.html", charset="windows-1252"),
    NastyResource("/both/?all", "both/index-all.html", charset="utf-8"),
    NastyResource("/deep/a/b", "deep/a-b.html", charset="utf-8"),
    NastyResource("/deep/a/style", "deep/style.css", "text/css"),
    NastyResource("/deep/a/logo", "img/logo.gif", "image/gif"),
    NastyResource("/lie.gif", "lie.gif", "image/png"),
    NastyResource("/true.gif", "true.gif", "image/gif"),
    NastyResource("/lie.gif?v=2", "lie-v=2.gif", "image/gif"),
    NastyResource("/noending", "noending", "application/pdf"),
    NastyResource("/data.bin", "data.bin", None),
    NastyResource("/with%20space.html", "with space.html", charset="utf-8"),
    NastyResource("/with%20space", "with space-page.html", charset="utf-8"),
    NastyResource("/caf%C3%A9", "café.html", charset="utf-8", spellings=("/caf%c3%a9",)),
    NastyResource("/größe", "größe.html", charset="utf-8", spellings=("/gr%C3%B6%C3%9Fe",)),
    NastyResource("/caf%E9", "caf-latin.html", charset="windows-1252", spellings=("/caf%e9",)),
    NastyResource("/a%2Bb+c;d,e=f&g!h@i(j)*'k~", "a+b+c;d.html", charset="utf-8"),
    NastyResource("/q\"uo'te$x{y}\\z%25", "quote$x{y}\\z\"'%.html", charset="utf-8"),
    NastyResource("/line%0Abreak%09tab%0D", "line\nbreak.html", charset="koi8-r"),
    NastyResource("/hash%23mark%3Fquestion", "hash#mark?question.html", charset="utf-8"),
    NastyResource("/percent%2541", "percent%41.html", charset="utf-8", spellings=("/percent%25%34%31",)),
    NastyResource("/percent", "100%25 %20.html", charset="utf-8"),
    NastyResource("/double//slash//page", "double/slash/page.html", charset="utf-8", spellings=("/double/slash/page",)),
    NastyResource("/Case.HTML", "Case-2.HTML.html", charset="utf-8"),
    NastyResource("/case.html", "case.html", charset="utf-8"),
    NastyResource("/CASE?x", "CASE-x.html", charset="utf-8"),
    NastyResource("/case?x", "case-x-2.html", charset="utf-8"),
    NastyResource("/$1$uri%25{REQUEST_URI}", "vars.html", charset="utf-8"),
    NastyResource("/!not-^start$", "bang.html", charset="utf-8"),
    NastyResource("/-f", "dash.html", charset="utf-8"),
    NastyResource("/:splat/*", "colon/star.html", charset="utf-8"),
    NastyResource("/long/" + "x" * 200 + "?" + "y" * 1500, "long.html", charset="utf-8"),
    NastyResource("/.unlost-type-0/x.html", ".unlost-type-0/x.html", "text/plain"),
    NastyResource("/robots.txt", "robots.txt", "text/plain", "utf-8"),
    NastyResource("/script.php3", "script.php3", "text/plain"),
]
# Target of each redirect, and the expected Location.
REDIRECTS = {
    "/old": (f"{HOST}/plain.html", "/plain.html"),
    "/old?a=1": (f"{HOST}/page.php?id=1", "/page.php?id=1"),
    "/away": ("https://else.example/x?y=1#z", "https://else.example/x?y=1"),
    "/evil": (f"{HOST}//evil.example/", "/evil.example/"),
    "/header": ("http://else.example/\r\nSet-Cookie: a=b", "http://else.example/%0D%0ASet-Cookie:%20a=b"),
    "/dollar": ('http://else.example/$1"%{X}\\', "http://else.example/%241%22%25%7BX%7D%5C"),
}
# Redirect stubs: path, target and expected Location; those in a circle are served as files.
STUBS = {
    "/stub.html": ("stub.html", f"{HOST}/plain.html", "/plain.html"),
    "/alias/": ("alias/index.html", f"{HOST}/page.php?id=1", "/page.php?id=1"),
    "/alias/2": ("alias/2.html", f"{HOST}/", "/"),
    "/moved?to=1": ("moved-to=1.html", "https://else.example/new", "https://else.example/new"),
}
STUB_RING = {"/stub-ring/1.html": "stub-ring/1.html", "/stub-ring/2": "stub-ring/2.html"}
CIRCLES = {"/ring/1": "/ring/2", "/ring/2": "/ring/3", "/ring/3": "/ring/1", "/to-ring": "/ring/1"}
SAME = "/plain.html"
REFUSED = {
    "/zero%00byte": "byte 0",
    "/up/%2E%2E/%2e%2e/etc/passwd": "dots",
    "/" + "z" * 5_000: "too long",
}


def placed_resources() -> list[ExportedResource]:
    """Return all resources."""
    found = [ExportedResource(HOST + each.old, each.path, each.mime, each.charset) for each in FILES]
    found += [ExportedResource(f"{IMAGE}/pic?1", "img.other.example/pic-1.jpg", "image/jpeg")]
    found += [ExportedResource(HOST + old, None, redirect_target=to) for old, (to, _) in REDIRECTS.items()]
    found += [ExportedResource(HOST + old, path, "text/html", "utf-8", to) for old, (path, to, _) in STUBS.items()]
    targets = reversed(STUB_RING)
    found += [
        ExportedResource(HOST + old, path, "text/html", "utf-8", HOST + to)
        for (old, path), to in zip(STUB_RING.items(), targets, strict=True)
    ]
    found += [ExportedResource(HOST + old, None, redirect_target=HOST + to) for old, to in CIRCLES.items()]
    found += [ExportedResource(HOST + SAME, None, redirect_target=f"https://lost.example{SAME}")]
    found += [ExportedResource(HOST + old, f"refused-{number}.html", "text/html") for number, old in enumerate(REFUSED)]
    found += [
        ExportedResource(f"{HOST}/js", None, redirect_target="javascript:alert(1)"),
        ExportedResource("mailto:a@b.example", "mail", "text/html"),
    ]
    return found


def body(path: str) -> bytes:
    """Return the content of a file, which is unique."""
    return f"<p>This is {path!r}, <?php echo 'a program'; ?>".encode()


def write_site(folder: Path, files: dict[str, bytes]) -> None:
    """Write the site and further files."""
    for path in {each.path for each in placed_resources() if each.path is not None}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body(path))
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        assert not (folder / path).exists()
        (folder / path).write_bytes(content)
