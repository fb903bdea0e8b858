"""Two crawls of Common Crawl: a fake index of each, and nginx with their WARCs."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.archives.archive_files import digest_of, page, revisit, write
from tests.archives.helpers import make_http_client
from tests.external import nginx
from tests.external.common_crawl import CommonCrawl as FakeCommonCrawl
from tests.external.common_crawl import Crawl, fake_common_crawl, read_rows
from unlost.archives import CommonCrawlClient
from unlost.registry import Archive, ArchiveKind

# warcio relies on the garbage collector to close its temporary files.
UNCOLLECTED = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

T = TypeVar("T")
HOME = "http://example.com/"
OLD = {"from": "2014-02-01T00:00:00", "to": "2014-02-20T00:00:00"}
NEW = {"from": "2016-05-01T00:00:00", "to": "2016-05-20T00:00:00"}


@pytest.fixture(scope="module")
def warcs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a WARC of each of two crawls."""
    top = tmp_path_factory.mktemp("data")
    compressed = gzip.compress(b"packed")
    write(
        top / "crawl-data" / "old.warc.gz",
        page(HOME, "2014-02-10T00:00:01Z", b"first"),
        page("http://example.com/a/", "2014-02-10T00:00:02Z", b"folder"),
        page("http://example.com/a/b", "2014-02-10T00:00:03Z", compressed, [("Content-Encoding", "gzip")]),
        page("http://example.com/ab", "2014-02-10T00:00:04Z", b"cut", fields={"WARC-Truncated": "length"}),
        page("http://shop.example.com/", "2014-02-11T00:00:00Z", b"shop"),
    )
    write(
        top / "crawl-data" / "new.warc.gz",
        page(HOME, "2016-05-05T00:00:00Z", b"second"),
        page("http://example.com/gone", "2016-05-05T00:00:01Z", b"no", status="404 Not Found"),
        revisit(HOME, "2016-05-06T00:00:00Z", digest_of(b"first"), (HOME, "2014-02-10T00:00:01Z"), "304 Not Modified"),
        revisit("http://example.com/a/", "2016-05-06T00:00:00Z", digest_of(b"?"), None),
    )
    return top


@pytest.fixture(scope="module")
def data_port(warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Return the port at which nginx serves the WARCs."""
    with nginx.serve_folder(warcs, tmp_path_factory.mktemp("nginx")) as port:
        yield port


Scenario = Callable[[CommonCrawlClient, FakeCommonCrawl], Coroutine[Any, Any, T]]


@asynccontextmanager
async def _client(
    fake: FakeCommonCrawl, data: str, max_wait: float = 1e6, crawls: int | None = None
) -> AsyncIterator[CommonCrawlClient]:
    archive = Archive("cc", "Common Crawl", ArchiveKind.COMMON_CRAWL, cdx=f"{fake.url}/collinfo.json", replay=data)
    async with make_http_client(max_wait=max_wait) as http_client:
        yield CommonCrawlClient(archive, http_client, max_crawls=crawls)


@pytest.fixture
def ask(warcs: Path, data_port: int) -> Callable[..., Any]:
    """Return a function that runs a scenario with a client, the fake index, and nginx with byte ranges."""
    crawls = [
        Crawl("CC-MAIN-2016-22", read_rows(warcs / "crawl-data" / "new.warc.gz", "crawl-data/new.warc.gz"), NEW),
        Crawl("CC-MAIN-2014-10", read_rows(warcs / "crawl-data" / "old.warc.gz", "crawl-data/old.warc.gz"), OLD),
    ]

    def run(scenario: Scenario[T], data: str = "/{filename}", **options: Any) -> T:  # noqa: ANN401  options of the class
        async def run_with_server() -> T:
            async with fake_common_crawl([replace(crawl, rows=[*crawl.rows]) for crawl in crawls]) as fake:
                url = data if data.startswith("http") else f"http://127.0.0.1:{data_port}{data}"
                async with _client(fake, url, **options) as client:
                    return await scenario(client, fake)

        return asyncio.run(run_with_server())

    return run
