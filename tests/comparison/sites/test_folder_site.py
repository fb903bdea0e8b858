"""Tests of sites in folders: layouts of wget and of servers, unusual names, links and pipes."""

import hashlib
import os
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

import pytest

from unlost.comparison import file_site, guess_media_type, is_host_name, open_site, readable_bytes, url_of_path
from unlost.errors import InputError, UsageError


def write(root: Path, *files: str, body: bytes = b"<p>") -> Path:
    """Write files with the same content below a folder."""
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(body)
    return root


def test_hosts_are_the_first_folders(tmp_path: Path) -> None:
    """File names map to URLs with default pages, queries, ports and escapes."""
    write(
        tmp_path,
        "www.example.com/index.html",
        "www.example.com/a b/page.php?x=2&a=1",
        "example.com/%7Eme/100%.txt",
        "example.com/a#b.html",
        "localhost:8080/é.css",
    )
    os.utime(tmp_path / "example.com" / "a#b.html", (1392076801, 1392076801))
    found = open_site(tmp_path)
    assert found.resources.keys() == {
        "example.com/", "example.com/a+b/page.php?x=2&a=1", "example.com/~me/100%25.txt", "example.com/a%23b.html",
        "localhost:8080/%C3%A9.css",
    }  # fmt: skip
    one = found.resources["example.com/a%23b.html"]
    assert (one.uri, one.modified, one.datetime) == ("http://example.com/a%23b.html", "20140211000001", None)
    assert (one.digest, one.size, one.mime) == (hashlib.sha1(b"<p>", usedforsecurity=False).digest(), 3, "text/html")
    assert found.read_body(one, 2).content == b"<p"
    assert found.read_body(one, 2).is_truncated
    assert not found.read_body(one, 3).is_truncated


def test_base_is_the_url_of_the_folder(tmp_path: Path) -> None:
    """The base may be a subfolder of the server; progress ends with all bytes."""
    write(tmp_path, "index.html", "css/site.css")
    read: list[int] = []
    found = open_site(tmp_path, base="https://www.example.com/~me", on_read=read.append)
    assert {name: each.uri for name, each in found.resources.items()} == {
        "example.com/~me": "https://www.example.com/~me/index.html",
        "example.com/~me/css/site.css": "https://www.example.com/~me/css/site.css",
    }
    assert read[-1] == readable_bytes(tmp_path) == 6


@pytest.mark.parametrize("name", ["index.html", "css/a.css", "v1.0/a.html", "1.2.3.4.5/a"])
def test_folders_without_hosts_need_a_base(name: str, tmp_path: Path) -> None:
    """A guessed base would change every URL."""
    write(tmp_path, name, "example.com/a")
    with pytest.raises(UsageError, match="give --base"):
        open_site(tmp_path)


def test_files_of_httrack_are_skipped(tmp_path: Path) -> None:
    """Its log and index pages are next to the host folders."""
    write(tmp_path, "example.com/a.html", "hts-cache/new.zip", "index.html", "hts-log.txt")
    found = open_site(tmp_path)
    assert found.resources.keys() == {"example.com/a.html"}
    assert found.skipped == {"beside-hosts": 3}


def test_symbolic_links_pipes_and_invalid_names_are_skipped(tmp_path: Path) -> None:
    """They are counted; links are not followed, and pipes do not block."""
    host = write(tmp_path, "example.com/a.html") / "example.com"
    (host / "link.html").symlink_to(host / "a.html")
    (host / "loop").symlink_to(tmp_path)
    (host / "gone").symlink_to("/nowhere")
    os.mkfifo(host / "pipe")
    (Path(os.fsdecode(os.fsencode(host) + b"/\xff\xfe.html"))).write_bytes(b"x")
    (host / ("n" * 250)).write_bytes(b"")
    (host / "\x1b[2J\n.html").write_bytes(b"x")
    found = open_site(tmp_path)
    assert found.skipped == {"link": 3, "special-file": 1, "no-address": 1}
    assert found.problems.counts == {"bad-name": 1}
    assert str(found.problems.first["bad-name"]).isprintable()
    assert len(found.resources) == 3


def test_deleted_files_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both while the folder is read, and before a body is read."""
    write(tmp_path, "example.com/a.html", "example.com/b.html", "example.com/c.html")
    opened = file_site._open_regular_file

    def vanishing(file: Path) -> BinaryIO:
        if file.name == "b.html":
            file.unlink()
            os.mkfifo(file)
        elif file.name == "c.html":
            file.unlink()
        return opened(file)

    monkeypatch.setattr(file_site, "_open_regular_file", vanishing)
    found = open_site(tmp_path)
    assert found.resources.keys() == {"example.com/a.html"}
    assert found.problems.counts == {"unreadable": 2}
    (tmp_path / "example.com" / "a.html").unlink()
    with pytest.raises(InputError, match="vanished"):
        found.read_body(found.resources["example.com/a.html"], 9)


def test_empty_folders_are_rejected(tmp_path: Path) -> None:
    """A folder with only subfolders is not a site."""
    (tmp_path / "example.com" / "deep").mkdir(parents=True)
    with pytest.raises(InputError, match="nothing in it"):
        open_site(tmp_path)


def test_newer_of_two_files_with_one_url_is_used(tmp_path: Path) -> None:
    """An empty file is used only if there is no other."""
    write(tmp_path, "example.com/index.html", body=b"old")
    write(tmp_path, "www.example.com/index.html", body=b"new")
    os.utime(tmp_path / "example.com" / "index.html", (0, 0))
    assert open_site(tmp_path).resources["example.com/"].digest == hashlib.sha1(b"new", usedforsecurity=False).digest()


@pytest.mark.parametrize(
    ("name", "head", "mime"),
    [
        ("a.html", b"", "text/html"),
        ("a.HTM?x=1.pdf", b"", "text/html"),
        ("a", b"\xef\xbb\xbf <!-- c --><!DOCTYPE html>", "text/html"),
        ("a.php", b"{}", None),
        ("a.gif", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("a.gif", b"<html>not found", "text/html"),
        ("a.svg", b"<svg>", "image/svg+xml"),
        ("a.doc", b"%PDF-1.4", "application/pdf"),
        ("a.docx", b"PK\3\4", None),
        ("a." + "x" * 300, b"", None),
    ],
)
def test_types_follow_signature_and_extension(name: str, head: bytes, mime: str | None) -> None:
    """An unambiguous signature takes precedence over the extension."""
    assert guess_media_type(name, head) == mime


def test_host_names_are_recognised() -> None:
    """Ports, IP addresses and internationalised names; not every name with a dot."""
    hosts = ["example.com", "localhost", "127.0.0.1:80", "bücher.example", "a.b-c.co.uk+8080", "[::1]"]
    others = ["images", "v1.0", "1.2", "index.html~", ".hidden", "a..b", "a.b c", ""]
    assert [is_host_name(name) for name in hosts + others] == [True] * len(hosts) + [False] * len(others)
    assert url_of_path("a.com+8080/x", None) == "http://a.com:8080/x"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Disable the log."""


def test_wget_mirror_equals_the_site(tmp_path: Path) -> None:
    """A mirror by a real wget has the same URLs and digests."""
    links = b'<a href="a%20page.html">1</a><a href="deep/">2</a><img src="logo.png">'
    write(tmp_path, "live/index.html", body=links)
    write(tmp_path, "live/a page.html", "live/deep/index.html", body=b"<p>a page")
    write(tmp_path, "live/logo.png", body=b"\x89PNG\r\n\x1a\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path / "live"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        command = ["wget", "--quiet", "--no-config", "--recursive", "--page-requisites", "-e", "robots=off"]
        subprocess.run([*command, "-P", tmp_path / "mirror", address], check=True, timeout=30)
        server.shutdown()
    mirror, live = open_site(tmp_path / "mirror"), open_site(tmp_path / "live", base=address)
    assert len(live.resources) == 4
    assert {name: each.digest for name, each in mirror.resources.items()} == {
        name: each.digest for name, each in live.resources.items()
    }
