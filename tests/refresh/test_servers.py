"""ETag and Last-Modified of real servers: the table of docs/refresh.md."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.external.file_servers import fetch, serve_folder
from unlost.dates import from_epoch, to_http
from unlost.refresh import compute_cell, format_cell, visit_from_headers

CHANGED = 1_600_000_000  # seconds since 1970
URI = "http://a.example/page.html"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder that every user may read, with a page."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        for page in ("ready.html", "page.html"):
            put(place / page, "first " * 100)
        yield place


def put(page: Path, text: str) -> None:
    """Write a page as editors do, to a temporary file and then renamed, with a date that is always the same."""
    temporary = page.with_suffix(".new")
    temporary.write_text(text)
    temporary.chmod(0o644)
    os.utime(temporary, (CHANGED, CHANGED))
    temporary.replace(page)


EXPECTED = {
    # tag after an edit of same size and date; tag under gzip; status of: own gzip tag, later date, older date with tag
    "nginx": ("same", 'W/"…"', 304, 200, 200),
    "Apache": ("same", '"…-gzip"', 200, 304, 200),
    "Apache with INode": ("changed", '"…-gzip"', 200, 304, 200),
    "lighttpd": ("changed", "not compressed", None, 304, 304),
    "Caddy": ("same", '"…"', 304, 304, 304),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_servers_behave_as_documented(kind: str, folder: Path, tmp_path: Path) -> None:
    """ETag and date handling of each server matches the documented table."""
    with serve_folder(kind, folder, tmp_path) as port:
        _, plain = fetch(port, "/page.html")
        tag = plain["etag"]
        _, coded = fetch(port, "/page.html", Accept_Encoding="gzip")
        gzip_tag, under_gzip = coded.get("etag", ""), "not compressed"
        returned = None
        if coded.get("content-encoding") == "gzip":
            under_gzip = gzip_tag.replace(tag.strip('"'), "…")
            returned, _ = fetch(port, "/page.html", Accept_Encoding="gzip", If_None_Match=gzip_tag)
        later, _ = fetch(port, "/page.html", If_Modified_Since=to_http(from_epoch(str(CHANGED + 60))))
        older_date = to_http(from_epoch(str(CHANGED - 60)))
        older, _ = fetch(port, "/page.html", If_None_Match=tag, If_Modified_Since=older_date)
        put(folder / "page.html", "other " * 100)
        _, edited = fetch(port, "/page.html")
    after = "same" if edited["etag"] == tag else "changed"
    assert (after, under_gzip, returned, later, older) == EXPECTED[kind]
    assert plain["last-modified"] == edited["last-modified"] == to_http(from_epoch(str(CHANGED)))


@pytest.mark.parametrize(("kind", "claim"), [("nginx", "alike"), ("Apache", "alike"), ("Caddy", "same")])
def test_etags_of_content_codings_belong_to_one_page(kind: str, claim: str, folder: Path, tmp_path: Path) -> None:
    """A page received plain and gzipped is unchanged, whatever the server does to its ETag."""
    with serve_folder(kind, folder, tmp_path) as port:
        plain, coded = fetch(port, "/page.html")[1], fetch(port, "/page.html", Accept_Encoding="gzip")[1]
    first, second = visit_from_headers(URI, 0, 200, plain), visit_from_headers(URI, 90_000, 200, coded)
    assert format_cell(compute_cell(first, second)).split(".")[:2] == ["same", claim]
