"""Reading the state of a crawl, and the example of its documentation."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.crawl.live_site import Page, crawl_pages, html, serve_live_site
from tests.recovery.background_server import run_in_background
from unlost.crawl import CrawlOutcome, read_resources
from unlost.errors import InputError

ROOT = Path(__file__).parents[2]


def test_documentation_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example of docs/crawl.md crawls a local site."""
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "crawl.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with run_in_background(serve_live_site({"/": html("/a")})) as site:
        code = example.replace("http://example.com/", f"{site.url}/").replace("resources=1000", "resources=2, delay=0")
        exec(compile(code, "docs/crawl.md", "exec"), {})  # noqa: S102  of our own page
        assert capsys.readouterr().out.split() == [
            f"{site.url}/", "fetched", "200", "0", "0", f"{site.url}/a", "fetched", "404", "1", "1",
        ]  # fmt: skip


def test_state_can_be_read_during_a_crawl(tmp_path: Path) -> None:
    """A reader sees what is committed and does not block the crawl."""
    seen: list[int] = []

    async def run() -> None:
        async with serve_live_site({"/": html("/a", "/b"), "/a": html(), "/b": html()}) as site:

            def on_event(word: str, _: object) -> None:
                if word == "fetched":
                    found = list(read_resources(tmp_path / "crawl"))
                    seen.append(sum(each.outcome is CrawlOutcome.FETCHED for each in found))

            assert (await site.crawl(tmp_path / "crawl", on_event=on_event)).is_done

    asyncio.run(run())
    assert seen == [1, 2, 3]


def test_undecodable_headers_are_preserved(tmp_path: Path) -> None:
    """Header values that are not UTF-8 do not stop a crawl."""
    undecodable = Page(b"x", 200, {"content-type": "te\udcffxt/html", "etag": '"\udcff"', "cache-control": "é" * 9_000})

    async def run() -> None:
        from tests.external.fault_server import Exchange, run_fault_server
        from unlost.crawl import CrawlConfig, crawl

        async def answering(exchange: Exchange) -> None:
            head = "".join(f"{name}: {value}\r\n" for name, value in undecodable.headers.items())
            response = f"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n{head}\r\nx".encode("utf-8", "surrogateescape")
            await (exchange.send(response) if exchange.path == "/" else exchange.respond(404))

        async with run_fault_server(answering) as server:
            plan = CrawlConfig((f"{server.url}/",), delay=0.0)
            await crawl(plan, tmp_path / "crawl", contact="me@example.org")

    asyncio.run(run())
    [found] = read_resources(tmp_path / "crawl")
    assert (found.status, found.etag, found.mime) == (200, '"\udcff"', None)
    assert found.cache_control
    assert len(found.cache_control) <= 4_096


def test_modified_state_is_rejected(tmp_path: Path) -> None:
    """An unknown outcome and a file that is not SQLite raise InputError."""
    crawl_pages({"/": html()}, tmp_path / "crawl")
    file = tmp_path / "crawl" / "state.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE address SET standing = 'eaten'")
        connection.commit()
    with pytest.raises(InputError, match="not the state of a crawl"):
        list(read_resources(tmp_path / "crawl"))
    file.write_bytes(b"x" * 5_000)
    with pytest.raises(InputError, match="not the state of a crawl"):
        list(read_resources(tmp_path / "crawl"))
