"""Archives with a CDX URL list captures without further settings: real pywb, and both dialects for Memento entries."""

import asyncio
import re
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.archives.clients.records import response
from tests.archives.helpers import collected, listed, make_http_client
from tests.cli.run import unlost
from tests.neighbours import pywb
from tests.neighbours.scripted import Answer, scripted
from tests.neighbours.wayback_cdx import Stored, fake_wayback
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
    """Return the entry of a pywb as docs/archives.md shows it, for the collection `t` at a port."""
    page = (ROOT / "docs" / "archives.md").read_text()
    (entry,) = re.findall(r"^(\[\[archive\]\] +# a pywb of your own\n.*?)\n\n", page, re.DOTALL | re.MULTILINE)
    return str(entry).replace("http://localhost:8080/coll", f"http://127.0.0.1:{port}/t")


def loaded(folder: Path, text: str) -> Archive:
    """Return the archive that a registry file with one entry describes."""
    file = folder / "archives.toml"
    file.write_text(text)
    (archive,) = load_registry(file)
    return archive


def listing(archive: Archive, prefix: str) -> list[Capture]:
    """Return what an archive lists below a prefix."""

    async def run() -> list[Capture]:
        async with make_http_client() as http_client:
            return await listed(create_client(archive, http_client).list_prefix(prefix))

    return asyncio.run(run())


def a_warc(folder: Path) -> Path:
    """Write a WARC with a home page and 60 pages that nothing links to."""
    warc = folder / "site.warc.gz"
    records = [response(SITE, "2014-02-10T00:00:01Z", b"<p>home")]
    records += [response(f"{SITE}p/{number}", "2014-02-10T00:00:01Z", b"<p>page %d" % number) for number in range(60)]
    warc.write_bytes(b"".join(records))
    return warc


def test_documented_pywb_lists_everything(tmp_path: Path) -> None:
    """The entry of docs/archives.md gives the whole listing, and a recovery fetches all of it."""
    with pywb.serving_warcs([a_warc(tmp_path)], tmp_path) as (server,):
        archive = loaded(tmp_path, documented_entry(server.port))
        assert len(listing(archive, SITE)) == 61
        assert len(listing(archive, "*.lost.example")) == 61
        words = ("--archives", str(tmp_path / "archives.toml"), "-o", str(tmp_path / "r"), "--policy", "exhaustive")
        done = unlost("recover", SITE, *words)
        assert (done.returncode, b"61 recovered" in done.stderr) == (0, True), done.stderr


@pytest.mark.real_data
def test_documented_pywb_lists_a_real_site(tmp_path: Path) -> None:
    """Every response of a WARC that wget wrote is listed, by the entry of docs/archives.md."""
    warc = DATA / "sites" / "academic.warc.gz"
    with warc.open("rb") as file:
        held = {record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file)}
    with pywb.serving_warcs([warc], tmp_path) as (server,):
        archive = loaded(tmp_path, documented_entry(server.port))
        found = {capture.uri for capture in listing(archive, "https://dahrse-midlands.github.io/")}
    assert len(held) == 74
    assert found == held


def test_memento_archive_with_pywb_cdx_server_lists(tmp_path: Path) -> None:
    """Objects per line are read as pywb's dialect; a capture without a replay URL is fetched by way of the TimeMap."""
    with pywb.serving_warcs([a_warc(tmp_path)], tmp_path) as (server,):
        base = f"http://127.0.0.1:{server.port}/t/"
        archive = loaded(tmp_path, MEMENTO.replace("{base}", base) + f'cdx = "{base}cdx"\n')

        async def run() -> None:
            async with make_http_client() as http_client:
                client = create_client(archive, http_client)
                found = await listed(client.list_prefix(SITE))
                assert len(found) == 61
                assert {capture.status for capture in found} == {200}
                copy = await client.fetch(found[-1])
                assert copy is not None
                with copy.body:
                    assert b"<p>page 9" in copy.body.read()
                assert await listed(client.list_prefix("http://other.example/")) == []

        asyncio.run(run())


def test_memento_archive_with_wayback_cdx_server_lists(tmp_path: Path) -> None:
    """An array of arrays is read as the Wayback dialect, beyond the cap of one query, with one request to tell it."""
    pages = [Stored(f"{SITE}{number}", "20140210000001") for number in range(25)]

    async def run() -> None:
        async with fake_wayback(pages) as server, make_http_client() as http_client:
            text = MEMENTO.replace("{base}", f"{server.base}/web/") + f'cdx = "{server.base}/cdx/search/cdx"\n'
            text += 'lister = { matches = ["prefix"], rows_per_page = { value = 10, source = "a test" } }\n'
            client = create_client(loaded(tmp_path, text), http_client)
            assert len(await listed(client.list_prefix(SITE))) == 25
            assert len(server.paths(RequestKind.INDEX)) == 1 + 3
            assert len(await listed(client.list_prefix(SITE))) == 25
            assert len(server.paths(RequestKind.INDEX)) == 1 + 3 + 3

    asyncio.run(run())


def test_timegate_with_cdx_server_lists_single_pages(tmp_path: Path) -> None:
    """Without a TimeMap the CDX server is queried for the captures of a URL."""

    async def run() -> None:
        async with fake_wayback([Stored(SITE, "20140210000001")]) as server, make_http_client() as http_client:
            text = MEMENTO.replace("timemap =", "timegate =").replace("{base}timemap/link/", f"{server.base}/web/")
            archive = loaded(tmp_path, text + f'cdx = "{server.base}/cdx/search/cdx"\n')
            (found,) = await listed(create_client(archive, http_client).captures(SITE))
            assert (found.datetime, found.status) == ("20140210000001", 200)

    asyncio.run(run())


def test_cdx_server_with_other_text_fails(tmp_path: Path) -> None:
    """An error page is not taken for an empty listing, and an archive without a CDX URL still lists nothing."""

    async def run() -> None:
        async with make_http_client() as http_client, scripted({}) as server:
            text = MEMENTO.replace("{base}", f"{server.base}/")
            _, error = await collected(create_client(loaded(tmp_path, text), http_client).list_prefix(SITE))
            assert isinstance(error, UnsupportedError)
            query = "url=lost.example&matchType=host&output=json"
            page = Answer(200, {"Content-Type": "text/html"}, "<p>out of order")
            for more in ("limit=1", "showResumeKey=true&limit=150000"):
                server.answers[f"/cdx?{query}&{more}"] = page
            client = create_client(loaded(tmp_path, f'{text}cdx = "{server.base}/cdx"\n'), http_client)
            _, error = await collected(client.list_prefix("http://lost.example"))
            assert isinstance(error, FailedError)

    asyncio.run(run())
