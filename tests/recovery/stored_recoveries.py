"""Recoveries that an earlier version left unfinished, and the archive to resume them from.

A recovery stores archives by their registry id, and requests captures at the URLs that the registry of the day gives,
so the port of the archive that the recovery was made from does not matter.

Run as a module with version 0.1.0, it writes the stored recoveries: see stored/README.md.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from tests.cli.run import UNLOST
from unlost.testing import Copy, FakeArchive, write_registry

SITE = "http://lost.example/"
CDN = "http://cdn.example/"
ARCHIVE = "first"
NAMES = ("default", "requisites")
RECOVERED_FIRST = 8
"""How many captures the archive gave before the recovery was stopped, at least."""

_STORED = Path(__file__).with_name("stored")
_OPTIONS = {"default": (), "requisites": ("--requisites", "--keep-rejected")}
_DATE = "20140210000001"
_PARKED = "<title>lost.example</title><p>This domain is for sale</p><a href='/spam.html'>Related searches</a>"
_TEXT = "<p>The mill at Eastwater grinds on Sundays, and the miller shows the stones, the wheel and the pond.</p>"


def _page(title: str, *links: str, parts: tuple[str, ...] = ()) -> str:
    head = "".join(f"<link rel='stylesheet' href='{part}'>" for part in parts if part.endswith(".css"))
    images = "".join(f"<img src='{part}'>" for part in parts if part.endswith(".gif"))
    anchors = "".join(f"<a href='{link}'>{link}</a> " for link in links)
    return f"<!DOCTYPE html><title>{title}</title>{head}<h1>{title}</h1>{_TEXT}{images}{anchors}"


def holdings() -> dict[str, list[Copy]]:
    """Return what the archive holds.

    The home page links to `for-sale.html`, of which only a parked page is archived, and to `nowhere.html`, which is not
    archived. `page-5.html`, which is requested after the recovery was stopped, links to `sold-later.html`, of which
    only a parked page is archived either. Nothing links to `unlinked.html` and `unlinked.gif`. Two pages load parts
    from another host.
    """
    pages = [f"page-{number}.html" for number in range(6)]
    front = _page("The mill", "for-sale.html", "nowhere.html", "old.html", *pages, parts=("site.css", f"{CDN}font.css"))
    found: dict[str, list[Copy]] = {
        SITE: [Copy(_DATE, front)],
        f"{SITE}site.css": [Copy(_DATE, "h1 { background: url(img/wheel.gif) }", "text/css")],
        f"{SITE}img/wheel.gif": [Copy(_DATE, b"GIF89a wheel", "image/gif")],
        f"{SITE}for-sale.html": [Copy("20150101000000", _PARKED)],
        f"{SITE}sold-later.html": [Copy("20150102000000", _PARKED + "<p>Buy it")],
        f"{SITE}spam.html": [Copy(_DATE, _page("Related searches"))],
        f"{SITE}old.html": [Copy(_DATE, b"", "text/html", 301, f"{SITE}page-0.html")],
        f"{SITE}unlinked.html": [Copy(_DATE, _page("Nothing links here"))],
        f"{SITE}unlinked.gif": [Copy(_DATE, b"GIF89a unlinked", "image/gif")],
        f"{CDN}font.css": [Copy(_DATE, "h1 { font-family: mill }", "text/css")],
        f"{CDN}photo.gif": [Copy(_DATE, b"GIF89a photo", "image/gif")],
    }
    for number, path in enumerate(pages):
        links = ("sold-later.html", "last.html") if number == 5 else ()
        image = f"img/{number}.gif"
        found[SITE + path] = [
            Copy("20120101000000", _page(f"Page {number} of 2012", parts=(image,))),
            Copy(_DATE, _page(f"Page {number}", *links, parts=(image, f"{CDN}photo.gif"))),
        ]
        found[SITE + image] = [Copy(_DATE, f"GIF89a {number}".encode(), "image/gif")]
    found[f"{SITE}last.html"] = [Copy(_DATE, _page("The last page"))]
    return found


def archive() -> FakeArchive:
    """Return the archive, which is to be used in a `with` block."""
    return FakeArchive(holdings(), id=ARCHIVE)


def unpack(folder: Path, name: str, version: str = "0.1.0") -> Path:
    """Unpack a stored recovery below a folder; return the recovery's own folder. name: one of NAMES."""
    with tarfile.open(_STORED / f"{version}.tar.gz") as file:
        members = [member for member in file.getmembers() if member.name.split("/")[0] == name]
        file.extractall(folder, members, filter="data")
    return folder / name


def _make(name: str, folder: Path) -> None:
    """Start a recovery, and stop it after some captures."""
    stop = folder / "stop"
    environment = os.environ | {"UNLOST_HOME": str(folder / f"home-{name}"), "UNLOST_CONTACT": "me@example.org"}
    with archive() as running:
        registry = write_registry(folder / "archives.toml", running.registry_entry())
        places: list[str | Path] = ["--archives", registry, "-o", folder / name, "--stop-file", stop]
        pace = ["--connections", "1", "--wait", "0.2"]
        command: list[str | Path] = [UNLOST, "recover", SITE, *places, *pace, *_OPTIONS[name]]
        process = subprocess.Popen(command, env=environment)
        while process.poll() is None:
            if running.count("replay") >= RECOVERED_FIRST:
                stop.touch()
            time.sleep(0.02)
    if process.returncode != 4:
        raise RuntimeError(f"{name}: expected an unfinished recovery, exit code {process.returncode}")
    stop.unlink()


def main(output: Path) -> None:
    """Write all recoveries into an archive file."""
    folder = Path(tempfile.mkdtemp())
    try:
        with tarfile.open(output, "w:gz") as file:
            for name in NAMES:
                _make(name, folder)
                for path in sorted((folder / name).rglob("*")):
                    member = file.gettarinfo(path, str(path.relative_to(folder)))
                    member.uid = member.gid = 0
                    member.uname = member.gname = ""
                    if member.isfile():
                        with path.open("rb") as content:
                            file.addfile(member, content)
                    else:
                        file.addfile(member)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
