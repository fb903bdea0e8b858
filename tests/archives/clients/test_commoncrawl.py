"""Common Crawl: an index server for each crawl, records by range, and everything that can go wrong with either."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.archives.archive_files import body_of, digest_of, page, revisit, write
from tests.archives.collected import a_courier
from tests.neighbours import nginx
from tests.neighbours.common_crawl import CommonCrawl as FakeCommonCrawl
from tests.neighbours.common_crawl import Crawl, rows_of, serving
from tests.neighbours.faults import Talk, faulty
from unlost.archives.archive import Archive, Kind
from unlost.archives.clients.commoncrawl import CommonCrawl
from unlost.errors import FailedError, ListCutError, NotNowError, UsageError
from unlost.formats.capture import Capture

# warcio leaves its temporary files to the garbage collector.
pytestmark = [
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
    packed = gzip.compress(b"packed")
    write(
        top / "crawl-data" / "old.warc.gz",
        page(HOME, "2014-02-10T00:00:01Z", b"first"),
        page("http://example.com/a/", "2014-02-10T00:00:02Z", b"folder"),
        page("http://example.com/a/b", "2014-02-10T00:00:03Z", packed, [("Content-Encoding", "gzip")]),
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
    """Return the port at which nginx has the WARCs."""
    with nginx.serving(warcs, tmp_path_factory.mktemp("nginx")) as port:
        yield port


Asked = Callable[[CommonCrawl, FakeCommonCrawl], Coroutine[Any, Any, T]]


@asynccontextmanager
async def _client(
    fake: FakeCommonCrawl, data: str, patience: float = 1e6, crawls: int | None = None
) -> AsyncIterator[CommonCrawl]:
    archive = Archive("cc", "Common Crawl", Kind.COMMON_CRAWL, cdx=f"{fake.url}/collinfo.json", replay=data)
    async with a_courier(patience=patience) as courier:
        yield CommonCrawl(archive, courier, crawls=crawls)


@pytest.fixture
def ask(warcs: Path, data_port: int) -> Callable[..., Any]:
    """Return what asks a client that has the fake index before it, and nginx with real ranges behind."""
    crawls = [
        Crawl("CC-MAIN-2016-22", rows_of(warcs / "crawl-data" / "new.warc.gz", "crawl-data/new.warc.gz"), NEW),
        Crawl("CC-MAIN-2014-10", rows_of(warcs / "crawl-data" / "old.warc.gz", "crawl-data/old.warc.gz"), OLD),
    ]

    def run(question: Asked[T], data: str = "/{filename}", **options: Any) -> T:  # noqa: ANN401  those of the class
        async def asking() -> T:
            async with serving([replace(crawl, rows=[*crawl.rows]) for crawl in crawls]) as fake:
                address = data if data.startswith("http") else f"http://127.0.0.1:{data_port}{data}"
                async with _client(fake, address, **options) as client:
                    return await question(client, fake)

        return asyncio.run(asking())

    return run


async def _all(captures: AsyncIterator[Capture]) -> list[Capture]:
    return [capture async for capture in captures]


async def _until(captures: AsyncIterator[Capture], into: list[Capture]) -> None:
    async for capture in captures:
        into.append(capture)  # noqa: PERF401  what came before an error counts


def test_captures_of_a_page(ask: Callable[..., Any]) -> None:
    """All crawls are asked, newest first, one request each; the list of crawls is asked for once."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        for _ in range(2):
            found = await _all(client.captures("https://www.example.com"))
            assert [(c.datetime, c.status, c.revisit, c.archive) for c in found] == [
                ("20160505000000", 200, False, "cc"),
                ("20160506000000", 304, True, "cc"),
                ("20140210000001", 200, False, "cc"),
            ]
            assert found[0].filename == "crawl-data/new.warc.gz"
        assert [path.partition("?")[0] for path in fake.asked] == [
            "/collinfo.json",
            *["/CC-MAIN-2016-22-index", "/CC-MAIN-2014-10-index"] * 2,
        ]
        assert await _all(client.captures("http://nowhere.example/")) == []
        assert client.problems.total == 0

    ask(question)


def test_what_is_below_a_prefix(ask: Callable[..., Any]) -> None:
    """Folders, hosts and domains are listed over all pages; crawls of other times are not asked."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        fake.page_rows = 2
        folder = [c.uri async for c in client.under("http://example.com/a/", "2014", "2014")]
        assert folder == ["http://example.com/a/", "http://example.com/a/b"]
        fake.is_loose = True
        assert [c.uri async for c in client.under("http://example.com/a/", "2014", "2014")] == folder, "each once"
        assert not [path for path in fake.asked if "2016-22" in path]
        assert len([c async for c in client.under("http://example.com")]) == 8
        domain = [c.uri async for c in client.under("*.example.com", last="201402")]
        assert len(domain) == 5
        assert domain[-1] == "http://shop.example.com/"
        assert [c async for c in client.under("http://example.com", "2015", "2015")] == []

    ask(question)


def test_copies_come_by_range(ask: Callable[..., Any]) -> None:
    """One record is taken out of the WARC, its coding undone; what the crawler cut says so; what is gone is None."""

    async def question(client: CommonCrawl, _fake: FakeCommonCrawl) -> None:
        assert body_of(await client.get(HOME)) == b"second"
        assert body_of(await client.get(HOME, "2014")) == b"first"
        assert body_of(await client.get("http://example.com/a/b")) == b"packed"
        cut = await client.get("http://example.com/ab")
        assert cut is not None
        assert (cut.truncated, cut.capture.archive, cut.capture.status) == ("length", "cc", 200)
        cut.body.close()
        gone = await client.get("http://example.com/gone")
        assert gone is not None
        assert gone.capture.status == 404
        gone.body.close()
        assert await client.get("http://nowhere.example/") is None
        capture = (await _all(client.captures(HOME)))[0]
        assert await client.fetch(replace(capture, filename="crawl-data/lost.warc.gz")) is None
        assert body_of(await client.fetch(replace(capture, filename=None))) == b"second"

    ask(question)


def test_the_closest_crawl_is_asked_first(ask: Callable[..., Any]) -> None:
    """Crawls that cannot have a closer copy are not asked."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        body_of(await client.get(HOME, "20140210"))
        assert await client.crawl_date("http://example.com/gone") == "20160505000001"
        assert await client.crawl_date(HOME) == "20160506000000", "a revisit is a visit"
        assert [path.partition("?")[0] for path in fake.asked] == [
            "/collinfo.json",
            "/CC-MAIN-2014-10-index",
            "/CC-MAIN-2016-22-index",
            "/CC-MAIN-2016-22-index",
        ]
        assert await client.crawl_date("http://nowhere.example/") is None

    ask(question)


def test_revisits(ask: Callable[..., Any]) -> None:
    """A revisit has the body of the record that it names; one that names none is an error."""

    async def question(client: CommonCrawl, _fake: FakeCommonCrawl) -> None:
        _, again, _ = await _all(client.captures(HOME))
        copy = await client.fetch(again)
        assert copy is not None
        assert (copy.capture.datetime, copy.capture.status) == ("20160506000000", 200)
        assert copy.capture.revisit_of == (HOME, "20140210000001")
        assert body_of(copy) == b"first"
        other = (await _all(client.captures("http://example.com/a/")))[0]
        with pytest.raises(FailedError, match="as before"):
            await client.fetch(other)
        assert body_of(await client.get("http://example.com/a/")) == b"folder", "revisits are not chosen"

    ask(question)


def test_fewer_crawls_on_request(ask: Callable[..., Any]) -> None:
    """A list of fewer crawls than there are says so at its end."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        found: list[Capture] = []
        with pytest.raises(ListCutError, match="1 of 2 crawls"):
            await _until(client.captures(HOME), found)
        assert len(found) == 2
        assert not [path for path in fake.asked if "2014" in path]
        assert len([c async for c in client.under("http://example.com", "2014", "2014")]) == 4, "there is but one then"

    ask(question, crawls=1)


def test_a_server_that_ignores_ranges(ask: Callable[..., Any]) -> None:
    """From a WARC that comes as a whole, if it is small, the record is taken out."""

    async def question(client: CommonCrawl, _fake: FakeCommonCrawl) -> None:
        assert body_of(await client.get("http://example.com/a/b")) == b"packed"

    ask(question, data="/whole/{filename}")


def _ranges(answer: Callable[[Talk, bytes, int, int], Coroutine[Any, Any, None]], warcs: Path) -> Callable[[Talk], Any]:
    """Return what answers ranges of the old WARC wrongly."""
    data = (warcs / "crawl-data" / "old.warc.gz").read_bytes()

    async def answering(talk: Talk) -> None:
        first, _, last = talk.headers["range"].removeprefix("bytes=").partition("-")
        await answer(talk, data, int(first), int(last))

    return answering


async def _another_range(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[: last - first + 1], content_range=f"bytes 0-{last - first}/{len(data)}")


async def _no_range_said(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[first : last + 1])


async def _a_lie(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[: last - first + 1], content_range=f"bytes {first}-{last}/{len(data)}")


async def _less_than_said(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, data[first:last], content_range=f"bytes {first}-{last}/{len(data)}")


async def _rubbish(talk: Talk, data: bytes, first: int, last: int) -> None:
    await talk.answer(206, b"x" * (last - first + 1), content_range=f"bytes {first}-{last}/{len(data)}")


async def _a_page(talk: Talk, _data: bytes, _first: int, _last: int) -> None:
    await talk.answer(200, b"<html>welcome</html>")


async def _not_there(talk: Talk, _data: bytes, _first: int, _last: int) -> None:
    await talk.answer(416, b"")


async def _forbidden(talk: Talk, _data: bytes, _first: int, _last: int) -> None:
    await talk.answer(403, b"<Error>AccessDenied</Error>")


async def _endless(talk: Talk, data: bytes, _first: int, _last: int) -> None:
    await talk.answer(200, data + bytes(9 << 20))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (_another_range, "malformed"),
        (_no_range_said, "malformed"),
        (_a_lie, "foreign"),
        (_less_than_said, "reset"),
        (_rubbish, "malformed"),
        (_a_page, "malformed"),
        (_not_there, "status"),
        (_forbidden, "status"),
        (_endless, "too-large"),
    ],
)
def test_ranges_that_are_wrong(
    ask: Callable[..., Any], warcs: Path, fault: Callable[..., Coroutine[Any, Any, None]], kind: str
) -> None:
    """Whatever comes in the place of the record is never handed out."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        async with faulty(_ranges(fault, warcs)) as faults:
            archive = replace(client.archive, replay=f"{faults.url}/{{filename}}")
            client = CommonCrawl(archive, client._courier)
            capture = (await _all(client.captures("http://example.com/a/b")))[0]
            with pytest.raises(FailedError) as raised:
                await client.fetch(capture)
            assert raised.value.kind == kind
            assert len(faults.paths) == 1
        del fake

    ask(question)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"offset": 0}, "foreign"),
        ({"datetime": "20140210000009"}, "foreign"),
        ({"uri": "http://example.com/x", "key": "com,example)/x"}, "foreign"),
        ({"offset": 1 << 40}, "status"),
        ({"length": 1 << 40}, "too-large"),
        ({"length": 0}, "malformed"),
        ({"filename": "../../etc/passwd"}, "malformed"),
        ({"filename": "/etc/passwd"}, "malformed"),
        ({"filename": "a?b"}, "malformed"),
        ({"filename": "http://elsewhere.example/a.warc.gz"}, "malformed"),
    ],
)
def test_rows_that_lie(ask: Callable[..., Any], change: dict[str, Any], kind: str) -> None:
    """A record of another page, date or place than its row said is never handed out, and no name leads elsewhere."""

    async def question(client: CommonCrawl, _fake: FakeCommonCrawl) -> None:
        capture = (await _all(client.captures("http://example.com/a/b")))[0]
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(capture, **change))
        assert raised.value.kind == kind

    ask(question)


def test_a_member_that_is_cut_off(ask: Callable[..., Any]) -> None:
    """A row whose length is too short gives what is there, and says that it is damaged; or nothing that is a record."""

    async def question(client: CommonCrawl, _fake: FakeCommonCrawl) -> None:
        capture = (await _all(client.captures(HOME)))[0]
        copy = await client.fetch(replace(capture, length=(capture.length or 0) - 12))
        assert copy is not None
        assert copy.truncated == "damage"
        copy.body.close()
        with pytest.raises(FailedError) as raised:
            await client.fetch(replace(capture, length=12))
        assert raised.value.kind == "malformed"

    ask(question)


@pytest.mark.parametrize(
    ("instead", "kind"),
    [
        ((200, b"<html>" + b"rubbish\n" * 650_000), "malformed"),
        ((200, b"\0" * 5_000_000), "malformed"),
        ((200, b"[" * 5_000_000), "malformed"),
        ((404, b"<html>no such page</html>"), "status"),
        ((404, b'{"message": "Collection not found: x"}'), "status"),
        ((403, b"Blocked"), "status"),
        ((400, b'{"message": "bad"}'), "status"),
    ],
)
def test_index_answers_that_are_none(ask: Callable[..., Any], instead: tuple[int, bytes], kind: str) -> None:
    """Rubbish, other people's 404s and refusals are errors, not empty lists."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        fake.instead["-index"] = instead
        for asked in (client.captures(HOME), client.under("http://example.com")):
            with pytest.raises(FailedError) as raised:
                await _all(asked)
            assert raised.value.kind == kind
        with pytest.raises(FailedError):
            await client.get(HOME)

    ask(question)


def test_bad_rows_are_lost_alone(ask: Callable[..., Any]) -> None:
    """Rows that cannot be read, or of pages that were not asked for, are counted; the others are listed."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        good = json.dumps(fake.crawls[0].rows[0]).encode()
        half = b'{"url": "\\ud800", "urlkey": "com,example)/", "timestamp": "2014"}'
        rows = [
            b"{",
            b"[]",
            half,
            good,
            b"",
            good.replace(b"example", b"other"),
            good.replace(b'"2016', b'"x'),
            good.replace(b'"offset": "', b'"offset": "-'),
        ]
        fake.instead["2016-22-index"] = (200, b"\n".join(rows))
        found = await _all(client.captures(HOME))
        assert [capture.datetime[:4] for capture in found] == ["2016", "2014"]
        assert client.problems.counts == {"bad-json": 3, "other-page": 1, "bad-date": 1, "bad-number": 1}

    ask(question)


def test_a_page_that_repeats_the_one_before(ask: Callable[..., Any]) -> None:
    """It is not followed, its rows are listed once, and the list says at its end that it is cut."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        row = json.dumps(fake.crawls[0].rows[0]).encode()
        fake.instead["2016-22-index?url=example.com&matchType=host&output=json&showNumPages"] = (
            200,
            b'{"pages": 1000000000, "pageSize": 5, "blocks": 1}',
        )
        fake.instead["2016-22-index"] = (200, row)
        found: list[Capture] = []
        with pytest.raises(ListCutError, match="repeats"):
            await _until(client.under("http://example.com"), found)
        assert [capture.datetime[:4] for capture in found] == ["2016", *["2014"] * 4], "the other crawl is asked"
        assert len([path for path in fake.asked if "2016-22" in path]) == 3

    ask(question)


def test_a_server_without_pages(ask: Callable[..., Any]) -> None:
    """A server that answers the question for pages with rows is asked for one page."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        row = json.dumps(fake.crawls[0].rows[0]).encode()
        fake.instead["2016-22-index"] = (200, row)
        assert len(await _all(client.under("http://example.com", "2016"))) == 1

    ask(question)


@pytest.mark.parametrize(
    "answer", [b'{"pages": -1}', b'{"pages": "many"}', b'{"pages": true}', b"<html>", b"{}", b"[[1]]"]
)
def test_a_number_of_pages_that_is_none(ask: Callable[..., Any], answer: bytes) -> None:
    """It is an error, not an empty list."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        fake.instead["showNumPages"] = (200, answer)
        with pytest.raises(FailedError) as raised:
            await _all(client.under("http://example.com"))
        assert raised.value.kind == "malformed"

    ask(question)


def test_more_pages_than_are_read(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that is longer than anybody reads says so at its end."""
    monkeypatch.setattr("unlost.archives.clients.crawl_index.MAX_PAGES", 1)

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        fake.page_rows = 2
        found: list[Capture] = []
        with pytest.raises(ListCutError, match="of which 1"):
            await _until(client.under("http://example.com", "2014", "2014"), found)
        assert len(found) == 2

    ask(question)


def test_a_full_first_page_has_a_second(ask: Callable[..., Any]) -> None:
    """Captures of one address are listed to their end, however many there are."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        row = fake.crawls[0].rows[0]
        fake.crawls[0].rows = [
            {**row, "timestamp": f"2016050500{number // 60:02d}{number % 60:02d}"} for number in range(2400)
        ]
        fake.page_rows = 1000
        assert len({c.datetime for c in await _all(client.captures(HOME)) if c.datetime > "2016"}) == 2400

    ask(question)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((200, b"<html>"), "malformed"),
        ((200, b"{}"), "malformed"),
        ((200, b"[" * 100_000), "malformed"),
        ((404, b""), "status"),
    ],
)
def test_a_list_of_crawls_that_is_none(ask: Callable[..., Any], answer: tuple[int, bytes], kind: str) -> None:
    """It is an error, and asked for again by the next question."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        fake.instead["collinfo"] = answer
        with pytest.raises(FailedError) as raised:
            await _all(client.captures(HOME))
        assert raised.value.kind == kind
        fake.instead.clear()
        assert len(await _all(client.captures(HOME))) == 3

    ask(question)


def test_crawls_that_lead_elsewhere_are_left_out(ask: Callable[..., Any]) -> None:
    """An index server of another host than the list's is not asked, and counted."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        entries = [
            {"id": "CC-MAIN-2016-22", "cdx-api": f"{fake.url}/CC-MAIN-2016-22-index"},
            {"id": "CC-MAIN-2014-10", "cdx-api": "http://10.0.0.1/CC-MAIN-2014-10-index"},
            {"id": "CC-MAIN-2014-10", "cdx-api": "file:///etc/passwd"},
            {"id": 7},
            "text",
        ]
        fake.instead["collinfo"] = (200, json.dumps(entries).encode())
        assert len(await _all(client.captures(HOME))) == 2
        assert client.problems.counts == {"bad-crawl": 4}

    ask(question)


def test_slow_down_is_obeyed(ask: Callable[..., Any]) -> None:
    """After 503 nothing is asked again before it is time; whoever does not want to wait so long is told."""

    async def question(client: CommonCrawl, fake: FakeCommonCrawl) -> None:
        fake.instead["-index"] = (503, b"slow down")
        with pytest.raises(NotNowError):
            await _all(client.captures(HOME))
        assert len([path for path in fake.asked if "-index" in path]) == 1

    ask(question, patience=0.5)


def test_a_registry_entry_that_lacks_addresses() -> None:
    """Without the address of the list or of the data there is no client."""
    entry = Archive("cc", "Common Crawl", Kind.COMMON_CRAWL, cdx="http://127.0.0.1/collinfo.json")

    class Nobody:
        async def ask(self, *_: object) -> Any:  # noqa: ANN401  never called
            raise AssertionError

    with pytest.raises(UsageError, match="filename"):
        CommonCrawl(entry, Nobody())
