"""Real WARCs as files and through a local Common Crawl, compared with warcio."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.archives.archive_files import files
from tests.archives.helpers import make_http_client
from tests.external import nginx
from tests.external.common_crawl import Crawl, fake_common_crawl, read_rows
from tests.real_data import DATA
from unlost.archives import ArchiveClient, CommonCrawlClient, FetchedCapture
from unlost.capture import Capture
from unlost.errors import FailedError
from unlost.registry import Archive, ArchiveKind

WARCS = DATA / "warc"
NAMES = ("archive-org-2008.warc.gz", "iana-2020.warc.gz", "iana-2021.warc.gz", "magazine.warc.gz")

# warcio relies on the garbage collector to close its temporary files.
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))


Expected = tuple[str, str, str, bool]


def read_by_warcio(path: Path) -> Iterator[Expected]:
    """Yield URL, record date and SHA-1 of the decoded body of each response, and whether it is coded in Brotli."""
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == "response" and record.rec_headers.get_header("WARC-Target-URI").startswith("http"):
                is_brotli = record.http_headers.get_header("Content-Encoding") == "br"
                timestamp = "".join(filter(str.isdigit, record.rec_headers.get_header("WARC-Date")))[:14]
                raw = record.raw_stream.read() if is_brotli else b""  # warcio would need another package for Brotli
                body = brotli.decompress(raw) if is_brotli else record.content_stream().read()
                url = record.rec_headers.get_header("WARC-Target-URI")
                yield url, timestamp, hashlib.sha1(body).hexdigest(), is_brotli  # noqa: S324  to compare


def digest(stored: FetchedCapture | None) -> str:
    """Return the SHA-1 of a body."""
    assert stored is not None
    with stored.body:
        return hashlib.sha1(stored.body.read()).hexdigest()  # noqa: S324  to compare


async def compare_records(client: ArchiveClient, expected: list[Expected]) -> Counter[str]:
    """Fetch every record read by warcio, and count the outcomes."""
    results: Counter[str] = Counter()
    for url, timestamp, body, is_brotli in expected:
        same = [c async for c in client.captures(url) if c.datetime == timestamp and c.uri == url]
        fetched = [each for capture in same if not capture.revisit for each in [await _digest(client, capture)]]
        assert body in fetched
        results["brotli" if is_brotli else "same"] += 1
    return results


async def _digest(client: ArchiveClient, capture: Capture) -> str:
    try:
        return digest(await client.fetch(capture))
    except FailedError as error:
        return error.kind


def test_every_body_matches_warcio() -> None:
    """All decoded responses of four real WARCs are equal, including Brotli."""
    here = files(WARCS)
    expected = [each for name in NAMES for each in read_by_warcio(WARCS / name)]
    assert asyncio.run(compare_records(here, expected)) == {"same": 357, "brotli": 11}


def test_revisits_of_a_real_crawl_have_bodies() -> None:
    """All revisits of a site crawled twice have the body of their original."""

    async def bodies() -> Counter[str]:
        here = files(WARCS / "iana-2021.warc.gz")
        results: Counter[str] = Counter()
        async for capture in here.list_prefix("*.org"):
            if capture.revisit:
                kind = await _digest(here, capture)
                results["body" if len(kind) == 40 else kind] += 1
        return results

    assert asyncio.run(bodies()) == {"body": 33}


def test_damaged_and_unusual_files_are_served() -> None:
    """Readable records of damaged files are served, and the problems are those of the files."""

    async def served() -> tuple[int, dict[str, int], list[str]]:
        here = files(WARCS / "odd")
        actual = [capture for tld in ("com", "org", "dk", "hu", "net", "edu", "io", "cz", "gov")
                 async for capture in here.list_prefix(f"*.{tld}")]  # fmt: skip
        cut = []
        for capture in actual:
            try:
                stored = await here.fetch(capture)
            except FailedError:
                continue
            assert stored is not None
            if stored.truncated:
                cut.append(str(capture.filename))
            stored.body.close()
        return len(actual), (await here.problems()).counts, sorted(cut)

    count, problems, cut = asyncio.run(served())
    assert count == 13
    assert problems == {"short-block": 4, "truncated-gzip": 2, "garbage": 3, "bad-http": 1}
    assert cut == ["clipped.warc.gz", "evil-headers.warc", "ipwb-redirect.warc", "transfer-none_truncated.warc.gz"]


def test_common_crawl_of_real_records(tmp_path: Path) -> None:
    """All records of two real WARCs are fetched by range and equal those read by warcio."""
    crawls = [
        Crawl("CC-MAIN-2020-45", read_rows(WARCS / "iana-2020.warc.gz", "iana-2020.warc.gz")),
        Crawl("CC-MAIN-2008-2009", read_rows(WARCS / "archive-org-2008.warc.gz", "archive-org-2008.warc.gz")),
    ]
    expected = [each for name in NAMES[:2] for each in read_by_warcio(WARCS / name)]

    async def fetched(port: int) -> tuple[Counter[str], int]:
        async with fake_common_crawl(crawls) as fake:
            archive = Archive(
                "cc",
                "Common Crawl",
                ArchiveKind.COMMON_CRAWL,
                cdx=f"{fake.url}/collinfo.json",
                replay=f"http://127.0.0.1:{port}/{{filename}}",
            )
            async with make_http_client() as http_client:
                client = CommonCrawlClient(archive, http_client)
                return await compare_records(client, expected), client.problems.total

    with nginx.serve_folder(WARCS, tmp_path) as port:
        assert asyncio.run(fetched(port)) == ({"same": 268, "brotli": 11}, 0)
