"""Archives with a CDX URL list captures without further settings: real pywb, and both dialects for Memento entries."""

import asyncio
import re
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.archives.clients.records import response
from tests.archives.helpers import collect_captures, collect_until_error, make_http_client
from tests.cli.run import unlost
from tests.external import pywb
from tests.external.scripted_server import ScriptedResponse, scripted_server
from tests.external.wayback_cdx import StoredCapture, fake_wayback
from tests.real_data import DATA
from unlost.archives import create_client
from unlost.capture import Capture
from unlost.errors import FailedError, UnsupportedError
from unlost.registry import Archive, RequestKind, load_registry

ROOT = Path(__file__).parents[3]
SITE = "http://lost.example/"
MEMENTO = """
[[archive]]
id = "m"
name = "M"
kind = "memento"
limits = []
timemap = "{base}timemap/link/"
"""


def documented_entry(port: int) -> str:
    """Return the entry of docs/archives.md for a pywb with the collection `t` at a port."""
    page = (ROOT / "docs" / "archives.md").read_text()
    (entry,) = re.findall(r"^(\[\[archive\]\] +# a pywb of your own\n.*?)\n\n", page, re.DOTALL | re.MULTILINE)
    return str(entry).replace("http://localhost:8080/coll", f"http://127.0.0.1:{port}/t")


def load_archive(folder: Path, text: str) -> Archive:
    """Return the archive of a registry file with one entry."""
    file = folder / "archives.toml"
    file.write_text(text)
    (archive,) = load_registry(file)
    return archive


def list_below(archive: Archive, prefix: str) -> list[Capture]:
    """Return the listing of an archive below a prefix."""

    async def run() -> list[Capture]:
        async with make_http_client() as http_client:
            return await collect_captures(create_client(archive, http_client).list_prefix(prefix))

    return asyncio.run(run())


def write_warc(folder: Path) -> Path:
    """Write a WARC with a home page and 60 unlinked pages."""
    warc = folder / "site.warc.gz"
    records = [response(SITE, "2014-02-10T00:00:01Z", b"<p>home")]
    records += [response(f"{SITE}p/{number}", "2014-02-10T00:00:01Z", b"<p>page %d" % number) for number in range(60)]
    warc.write_bytes(b"".join(records))
    return warc


def test_documented_pywb_lists_everything(tmp_path: Path) -> None:
    """The documented entry lists everything, and a recovery fetches it."""
    with pywb.serve_warcs([write_warc(tmp_path)], tmp_path) as (server,):
        archive = load_archive(tmp_path, documented_entry(server.port))
        assert len(list_below(archive, SITE)) == 61
        assert len(list_below(archive, "*.lost.example")) == 61
        words = ("--archives", str(tmp_path / "archives.toml"), "-o", str(tmp_path / "r"), "--policy", "exhaustive")
        result = unlost("recover", SITE, *words)
        assert (result.returncode, b"61 recovered" in result.stderr) == (0, True), result.stderr


@pytest.mark.real_data
def test_documented_pywb_lists_a_real_site(tmp_path: Path) -> None:
    """Every response of a WARC written by wget is listed."""
    warc = DATA / "sites" / "academic.warc.gz"
    with warc.open("rb") as file:
        held = {record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file)}
    with pywb.serve_warcs([warc], tmp_path) as (server,):
        archive = load_archive(tmp_path, documented_entry(server.port))
        results = {capture.uri for capture in list_below(archive, "https://dahrse-midlands.github.io/")}
    assert len(held) == 74
    assert results == held


def test_memento_archive_with_pywb_cdx_server_lists(tmp_path: Path) -> None:
    """JSON Lines are read as pywb's dialect; captures without a replay URL are fetched via the TimeMap."""
    with pywb.serve_warcs([write_warc(tmp_path)], tmp_path) as (server,):
        base = f"http://127.0.0.1:{server.port}/t/"
        archive = load_archive(tmp_path, MEMENTO.replace("{base}", base) + f'cdx = "{base}cdx"\n')

        async def run() -> None:
            async with make_http_client() as http_client:
                client = create_client(archive, http_client)
                results = await collect_captures(client.list_prefix(SITE))
                assert len(results) == 61
                assert {capture.status for capture in results} == {200}
                fetched = await client.fetch(results[-1])
                assert fetched is not None
                with fetched.body:
                    assert b"<p>page 9" in fetched.body.read()
                assert await collect_captures(client.list_prefix("http://other.example/")) == []

        asyncio.run(run())


def test_memento_archive_with_wayback_cdx_server_lists(tmp_path: Path) -> None:
    """A JSON array is read as the Wayback dialect, beyond the cap of one query, after one detecting request."""
    pages = [StoredCapture(f"{SITE}{number}", "20140210000001") for number in range(25)]

    async def run() -> None:
        async with fake_wayback(pages) as server, make_http_client() as http_client:
            text = MEMENTO.replace("{base}", f"{server.base}/web/") + f'cdx = "{server.base}/cdx/search/cdx"\n'
            text += 'lister = { matches = ["prefix"], rows_per_page = { value = 10, source = "a test" } }\n'
            client = create_client(load_archive(tmp_path, text), http_client)
            assert len(await collect_captures(client.list_prefix(SITE))) == 25
            assert len(server.paths(RequestKind.INDEX)) == 1 + 3
            assert len(await collect_captures(client.list_prefix(SITE))) == 25
            assert len(server.paths(RequestKind.INDEX)) == 1 + 3 + 3

    asyncio.run(run())


def test_timegate_with_cdx_server_lists_single_pages(tmp_path: Path) -> None:
    """Without a TimeMap the CDX server is queried for the captures of a URL."""

    async def run() -> None:
        async with fake_wayback([StoredCapture(SITE, "20140210000001")]) as server, make_http_client() as http_client:
            text = MEMENTO.replace("timemap =", "timegate =").replace("{base}timemap/link/", f"{server.base}/web/")
            archive = load_archive(tmp_path, text + f'cdx = "{server.base}/cdx/search/cdx"\n')
            (results,) = await collect_captures(create_client(archive, http_client).captures(SITE))
            assert (results.datetime, results.status) == ("20140210000001", 200)

    asyncio.run(run())


def test_cdx_server_with_other_text_fails(tmp_path: Path) -> None:
    """An error page is not an empty listing, and an archive without a CDX URL lists nothing."""

    async def run() -> None:
        async with make_http_client() as http_client, scripted_server({}) as server:
            text = MEMENTO.replace("{base}", f"{server.base}/")
            _, error = await collect_until_error(
                create_client(load_archive(tmp_path, text), http_client).list_prefix(SITE)
            )
            assert isinstance(error, UnsupportedError)
            query = "url=lost.example&matchType=host&output=json"
            page = ScriptedResponse(200, {"Content-Type": "text/html"}, "<p>out of order")
            for more in ("limit=1", "showResumeKey=true&limit=150000"):
                server.responses[f"/cdx?{query}&{more}"] = page
            client = create_client(load_archive(tmp_path, f'{text}cdx = "{server.base}/cdx"\n'), http_client)
            _, error = await collect_until_error(client.list_prefix("http://lost.example"))
            assert isinstance(error, FailedError)

    asyncio.run(run())
