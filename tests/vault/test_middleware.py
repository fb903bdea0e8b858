"""Middleware under real servers with real clients: which responses carry blocks, and which are unchanged."""

import gzip
import http.client
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.external.process import is_open, start_server
from tests.vault.fixtures import pack_site, server_files, snapshot_folder, static_site
from unlost.vault import BlockCollector, DecryptionKeys, is_complete, recover_files

APPS = Path(__file__).with_name("apps.py")
BIN = Path(sys.executable).parent
SERVERS = {
    "fastapi": ("uvicorn", "fastapi_app"),
    "django-asgi": ("uvicorn", "django_asgi"),
    "flask": ("gunicorn", "flask_app"),
    "django-wsgi": ("gunicorn", "django_wsgi"),
}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a vault whose pages are /, /page/0 to /page/29 and /stream."""
    folder = tmp_path_factory.mktemp("vault")
    pages = folder / "pages.txt"
    pages.write_text("".join(f"{path}\t500\n" for path in ["/", "/stream", *(f"/page/{n}" for n in range(30))]))
    from unlost.vault import read_page_list

    server = server_files(folder)
    pack_site(folder / "v", server, static_site(folder, 1), extra_pages=2, options={"pages": read_page_list(pages)})
    return folder


@pytest.fixture(scope="module", params=SERVERS)
def port(request: pytest.FixtureRequest, vault: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Serve one of the applications."""
    server, app = SERVERS[request.param]

    def command(number: int) -> list[str | Path]:
        if server == "uvicorn":
            return [BIN / "uvicorn", f"apps:{app}", "--port", str(number), "--app-dir", APPS.parent]
        return [BIN / "gunicorn", f"apps:{app}", "-b", f"127.0.0.1:{number}", "--chdir", APPS.parent, "--threads", "2"]

    env = {"PATH": str(BIN), "UNLOST_TEST_VAULT": str(vault / "v"), "HOME": str(vault)}
    with start_server(command, is_open, tmp_path_factory.mktemp("server"), env) as number:
        yield number


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers in lower case, and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        body = response.read()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, body
    finally:
        connection.close()


def carries(body: bytes) -> bool:
    """Return whether a page carries a whole block."""
    return BlockCollector().add_page(body, "") > 0


def test_served_pages_restore_the_files(port: int, vault: Path, tmp_path: Path) -> None:
    """Two thirds of the pages, fetched over HTTP, suffice."""
    found = BlockCollector()
    for number in range(10, 30):
        status, headers, body = ask(port, f"/page/{number}")
        assert (status, int(headers["content-length"])) == (200, len(body))
        assert f"Page {number}".encode() in body
        found.add_page(body, f"/page/{number}")
    for extra in ("/unlost-vault/page-1.html", "/unlost-vault/page-2.html"):
        found.add_page(ask(port, extra)[2], extra)
    assert is_complete(recover_files(found, tmp_path / "back", DecryptionKeys()))
    assert snapshot_folder(tmp_path / "back" / "srv") == snapshot_folder(vault / "srv")
    assert b"page-2.html" in ask(port, "/unlost-vault/")[2]


def test_all_clients_get_the_same_bytes(port: int) -> None:
    """Archives and browsers get the same page, also on repeated requests."""
    agents = ("Mozilla/5.0", "Googlebot/2.1", "archive.org_bot", "")
    assert len({ask(port, "/page/3", user_agent=agent)[2] for agent in agents}) == 1


def test_streamed_page_ends_with_a_block(port: int) -> None:
    """A chunked response without Content-Length has its block after the last chunk."""
    _, headers, body = ask(port, "/stream")
    assert "content-length" not in headers
    assert body.startswith(b"<p>piece 0</p>")
    assert body.index(b"piece 4") < body.index(b"BEGIN_FILE_RECOVERY")
    assert carries(body)


@pytest.mark.parametrize("path", ["/data.json", "/packed", "/range", "/attached", "/fixed", "/not-html", "/missing"])
def test_responses_other_than_plain_html_are_unchanged(port: int, path: str) -> None:
    """JSON, compressed responses, ranges, downloads, no-transform, images declared as HTML, errors."""
    status, headers, body = ask(port, path)
    assert b"FILE_RECOVERY" not in body
    assert int(headers["content-length"]) == len(body)
    assert (status, path) in {(404, "/missing"), (206, "/range"), (200, path)}
    if path == "/packed":
        assert gzip.decompress(body) == b"<p>packed</p>"


def test_head_response_is_unchanged(port: int) -> None:
    """A response to HEAD has the application's headers and no body."""
    status, headers, body = ask(port, "/tagged", "HEAD")
    assert (status, body, headers["etag"]) == (200, b"", '"one"')


def test_etag_includes_blocks_and_still_matches(port: int) -> None:
    """The current ETag gives 304; one from before the vault gives the page."""
    status, headers, body = ask(port, "/page/1")
    assert status == 200
    tag = headers["etag"]
    assert tag.startswith('"one-v')
    assert carries(body)
    status, again, nothing = ask(port, "/page/1", if_none_match=tag)
    assert (status, again["etag"], nothing) == (304, tag, b"")
    assert ask(port, "/page/1", if_none_match='"one"')[0] == 200
    assert ask(port, "/page/1", if_none_match='"one-v000000000000"')[0] == 200
    assert ask(port, "/data.json", if_none_match='"json"')[0] == 304
    assert headers["last-modified"] == "Thu, 01 Jan 2026 00:00:00 GMT", "when the block came, which is later"
    assert ask(port, "/page/1", if_modified_since="Wed, 31 Dec 2025 00:00:00 GMT")[0] == 200


def test_unplanned_page_carries_the_block_of_its_path(port: int) -> None:
    """A page added later carries a block, and always the same one."""
    first, second = ask(port, "/page/99")[2], ask(port, "/page/99")[2]
    assert first == second
    assert carries(first)
