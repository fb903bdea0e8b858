"""Tests of the server of the demonstration: pages of sites are sandboxed, and no other files are served."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from unlost.demo import DemoServer
from unlost.web import listen


@pytest.fixture
def demo_server(tmp_path: Path) -> Iterator[DemoServer]:
    """Serve a folder with one page of the demonstration and one of a site."""
    folder = tmp_path / "page"
    (folder / "recovered" / "sub").mkdir(parents=True)
    (folder / "index.html").write_text("ours")
    (folder / "recovered" / "sub" / "index.html").write_text("theirs")
    (folder / "recovered" / "a?b #c.css").write_text("p {}")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").mkdir()
    (folder / "linked" / "index.html").symlink_to(tmp_path / "secret.txt")
    with listen("127.0.0.1", 0) as listening, DemoServer(listening, folder) as found:
        yield found


def fetch(demo_server: DemoServer, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of a response."""
    connection = http.client.HTTPConnection(demo_server.url.split("/")[2], timeout=30)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_site_pages_are_sandboxed(demo_server: DemoServer) -> None:
    """Our pages are not sandboxed; pages of a site load only files of that site."""
    status, headers, body = fetch(demo_server, "/")
    assert (status, body, headers["content-type"]) == (200, b"ours", "text/html; charset=utf-8")
    assert "content-security-policy" not in headers
    status, headers, body = fetch(demo_server, "/recovered/sub/")
    assert (status, body) == (200, b"theirs")
    policy = headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert f"img-src {demo_server.url}recovered/;" in policy


@pytest.mark.parametrize("path", ["/.%2Frecovered/sub/", "/pairs%2F..%2Frecovered/sub/", "/%2Frecovered/sub/"])
def test_path_variants_do_not_escape_the_sandbox(demo_server: DemoServer, path: str) -> None:
    """The served file decides, and not the spelling of the path."""
    status, headers, body = fetch(demo_server, path)
    assert (status, body) == (200, b"theirs")
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_special_characters_in_names_are_served(demo_server: DemoServer) -> None:
    """Paths are unescaped once."""
    status, headers, _ = fetch(demo_server, "/recovered/a%3Fb%20%23c.css?x")
    assert (status, headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert fetch(demo_server, "/recovered/sub/", "HEAD")[2] == b""


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "//secret.txt",
        "/link.txt",
        "/linked/",
        "/recovered/%00",
        f"/{'a' * 5000}",
    ],
)
def test_files_outside_the_folder_are_not_served(demo_server: DemoServer, path: str) -> None:
    """Parent folders, links and invalid names yield 404."""
    status, _, body = fetch(demo_server, path)
    assert (status, b"secret" in body) == (404, False)


def test_count_reachable_counts_successful_responses(demo_server: DemoServer) -> None:
    """Only existing pages count; after the block the server is stopped."""
    assert demo_server.count_reachable(["recovered/sub/", "recovered/none.html"]) == 1
    demo_server.__exit__(None, None, None)
    with pytest.raises(ConnectionRefusedError):
        fetch(demo_server, "/")
