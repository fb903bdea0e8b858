"""Publication of a MementoMap: conditional and range requests, and discovery."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.client import Client, run_fixed_service
from tests.web.fixed_results import PAGE

LINES = b'!context ["x"]\ncom,example)/* 3\norg,a)/ 1\n'


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the map."""
    path = tmp_path_factory.mktemp("map") / "map.ukvs"
    path.write_bytes(LINES)
    return path


@pytest.fixture(scope="module")
def publisher(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Run a service that publishes the map."""
    with run_fixed_service(tmp_path_factory.mktemp("publisher"), file) as client:
        yield client


def test_file_and_conditional_requests(publisher: Client) -> None:
    """ETag and Last-Modified give 304, a range gives its part."""
    response = publisher.request("/mementomap")
    assert (response.status, response.body) == (200, LINES)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert publisher.request("/mementomap", headers={"If-None-Match": response.headers["etag"]}).status == 304
    assert (
        publisher.request("/mementomap", headers={"If-Modified-Since": response.headers["last-modified"]}).status == 304
    )
    assert publisher.request("/mementomap", headers={"If-None-Match": '"other"'}).status == 200
    part = publisher.request("/mementomap", headers={"Range": "bytes=1-7"})
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"context", f"bytes 1-7/{len(LINES)}")
    assert publisher.request("/mementomap", headers={"Range": "bytes=9999-"}).status == 416
    assert publisher.request("/mementomap", "HEAD").headers["content-length"] == str(len(LINES))


def test_responses_link_to_the_map(publisher: Client) -> None:
    """With the relation `mementomap`, in addition to other links."""
    gates = (f"/timegate/{PAGE}", "/timegate/http://nothing.example/")
    for path in (f"/timemap/link/{PAGE}", *gates, "/about", "/", f"/api/find?uri={PAGE}"):
        assert publisher.request(path).headers["link"].count('</mementomap>; rel="mementomap"') == 1, path
    assert 'rel="original"' in publisher.request(f"/timegate/{PAGE}").headers["link"]
    assert "/mementomap" in publisher.request("/nowhere").text


def test_map_can_be_replaced(publisher: Client, file: Path) -> None:
    """By renaming, at any time; the next response has the new content and type."""
    etag = publisher.request("/mementomap").headers["etag"]
    new_file = file.with_name("new")
    new_file.write_bytes(gzip.compress(LINES))
    new_file.replace(file)
    os.utime(file, (1, 1))
    response = publisher.request("/mementomap", headers={"If-None-Match": etag})
    assert (response.status, gzip.decompress(response.body)) == (200, LINES)
    assert response.headers["content-type"] == "application/gzip"
    file.unlink()
    assert publisher.request("/mementomap").status == 503
    file.write_bytes(LINES)
