"""The page is served with both sites; nothing in these can act, and nothing else is given away."""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from unlost.demo import DemoServer
from unlost.web import listen


@pytest.fixture
def showing(tmp_path: Path) -> Iterator[DemoServer]:
    """Serve a folder that has one page of ours and one of a site."""
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


def asked(showing: DemoServer, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer."""
    connection = http.client.HTTPConnection(showing.url.split("/")[2], timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_site_pages_are_sandboxed(showing: DemoServer) -> None:
    """Ours are not; theirs load nothing but files of the same site."""
    status, headers, body = asked(showing, "/")
    assert (status, body, headers["content-type"]) == (200, b"ours", "text/html; charset=utf-8")
    assert "content-security-policy" not in headers
    status, headers, body = asked(showing, "/recovered/sub/")
    assert (status, body) == (200, b"theirs")
    policy = headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert f"img-src {showing.url}recovered/;" in policy


@pytest.mark.parametrize("path", ["/.%2Frecovered/sub/", "/pairs%2F..%2Frecovered/sub/", "/%2Frecovered/sub/"])
def test_path_variants_do_not_escape_the_sandbox(showing: DemoServer, path: str) -> None:
    """What decides is which file is given, not how somebody asks for it."""
    status, headers, body = asked(showing, path)
    assert (status, body) == (200, b"theirs")
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_special_characters_in_names_are_served(showing: DemoServer) -> None:
    """Escapes of an address are read once."""
    status, headers, _ = asked(showing, "/recovered/a%3Fb%20%23c.css?x")
    assert (status, headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert asked(showing, "/recovered/sub/", "HEAD")[2] == b""


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
def test_files_outside_the_folder_are_not_served(showing: DemoServer, path: str) -> None:
    """Neither upwards nor through links; what cannot be a name is not found."""
    status, _, body = asked(showing, path)
    assert (status, b"secret" in body) == (404, False)


def test_count_reachable_counts_successful_responses(showing: DemoServer) -> None:
    """Pages that are there count, others do not; when the block has ended, nobody listens."""
    assert showing.count_reachable(["recovered/sub/", "recovered/none.html"]) == 1
    showing.__exit__(None, None, None)
    with pytest.raises(ConnectionRefusedError):
        asked(showing, "/")
