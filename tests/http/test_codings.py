"""Content codings of responses, declared correctly or not."""

import asyncio
import gzip
import subprocess
import zlib

import brotli
import pytest

from tests.external.fault_server import Exchange
from tests.http.harness import kind_of, run_server

PAGE = b"<html>" + bytes(range(256)) * 500
RAW = zlib.compressobj(wbits=-15)
ZSTD = subprocess.run(["zstd", "--stdout"], input=PAGE, capture_output=True, check=True).stdout
CODED = {
    "plain": ({}, PAGE, PAGE),
    "gzip": ({"content_encoding": "gzip"}, gzip.compress(PAGE), PAGE),
    "two streams": ({"content_encoding": "x-gzip"}, gzip.compress(PAGE) * 2, PAGE * 2),
    "rubbish behind": ({"content_encoding": "gzip"}, gzip.compress(PAGE) + bytes(999), PAGE),
    "deflate": ({"content_encoding": "deflate"}, zlib.compress(PAGE), PAGE),
    "raw deflate": ({"content_encoding": "deflate"}, RAW.compress(PAGE) + RAW.flush(), PAGE),
    "deflate that is gzip": ({"content_encoding": "deflate"}, gzip.compress(PAGE), PAGE),
    "not gzip": ({"content_encoding": "gzip"}, PAGE, PAGE),
    "not deflate": ({"content_encoding": "deflate"}, PAGE, PAGE),
    "nothing": ({"content_encoding": "gzip"}, b"", b""),
    "one byte": ({"content_encoding": "gzip"}, b"\x1f", b"\x1f"),
    "a file that is gzip": ({"content_type": "application/gzip"}, gzip.compress(PAGE), gzip.compress(PAGE)),
    "told by the original": ({"x_archive_orig_content_encoding": "gzip"}, gzip.compress(PAGE), PAGE),
    "not br": ({"content_encoding": "br"}, PAGE, PAGE),
    "br that was captured": ({"content_encoding": "br"}, brotli.compress(PAGE), PAGE),
    "br told by the original": ({"x_archive_orig_content_encoding": "br"}, brotli.compress(PAGE), PAGE),
    "zstd that was captured": ({"content_encoding": "zstd"}, ZSTD, PAGE),
    "undone before": ({"x_archive_orig_content_encoding": "compress"}, b"\0PAGE", b"\0PAGE"),
    "twice": ({"content_encoding": "deflate, gzip"}, gzip.compress(zlib.compress(PAGE)), PAGE),
    "identity": ({"content_encoding": "identity"}, PAGE, PAGE),
}


@pytest.mark.parametrize(("headers", "sent", "body"), CODED.values(), ids=CODED)
def test_body_is_decoded_by_its_content(headers: dict[str, str], sent: bytes, body: bytes) -> None:
    """Declared but uncompressed bodies are unchanged; undeclared compression is not decoded."""

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, sent, **headers)

    async def run() -> None:
        async with run_server(answering) as it:
            reply = await it.send()
            assert reply.body.read() == body
            assert reply.size == len(body)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("coding", "sent"),
    [
        ("gzip", gzip.compress(PAGE)[:-20]),
        ("gzip", gzip.compress(PAGE)[:40] + b"\xff" * 40),
        ("gzip", gzip.compress(b"x")[:-8] + bytes(8)),
        ("compress", b"\x1f\x9d\x90" * 9),
        ("gzip" + ", gzip" * 4, b"whatever"),
    ],
    ids=["cut", "damaged", "wrong sum", "not known", "too many"],
)
def test_undecodable_body_is_malformed(coding: str, sent: bytes) -> None:
    """A truncated page is never taken for a complete one."""

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(200, sent, content_encoding=coding)

    async def run() -> None:
        async with run_server(answering) as it:
            assert await kind_of(it) == "malformed"
            assert len(it.server.requests) == 1

    asyncio.run(run())


def test_range_is_not_decoded() -> None:
    """A range of a WARC is a gzip member, and is read as such."""
    member = gzip.compress(PAGE)

    async def answering(exchange: Exchange) -> None:
        await exchange.respond(206, member, content_encoding="gzip")

    async def run() -> None:
        async with run_server(answering) as it:
            assert (await it.send(headers={"Range": "bytes=0-99"})).body.read() == member

    asyncio.run(run())
