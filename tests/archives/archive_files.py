"""Small archive files for tests, written by warcio or by hand."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.archives import helpers
from unlost.archives import FetchedCapture, WarcFilesClient
from unlost.capture import Capture
from unlost.registry import Archive, ArchiveKind

T = TypeVar("T")

HTML = (("Content-Type", "text/html"),)


def archive(folder: Path) -> Archive:
    """Return the registry entry of a folder."""
    return Archive("mine", "My files", ArchiveKind.FILES, folder=str(folder))


def page(
    uri: str,
    date: str,
    body: bytes = b"<p>hello</p>",
    headers: Sequence[tuple[str, str]] = HTML,
    status: str = "200 OK",
    fields: dict[str, str] | None = None,
) -> Callable[[WARCWriter], Any]:
    """Return a function that creates a response record. date: ISO."""

    def make(writer: WARCWriter) -> Any:  # noqa: ANN401  warcio has no types
        head = StatusAndHeaders(status, list(headers), protocol="HTTP/1.1")
        return writer.create_warc_record(
            uri,
            "response",
            io.BytesIO(body),
            http_headers=head,
            warc_headers_dict={"WARC-Date": date, **(fields or {})},
        )

    return make


def revisit(
    uri: str, date: str, digest: str, of: tuple[str, str] | None, status: str | None = "200 OK"
) -> Callable[[WARCWriter], Any]:
    """Return a function that creates a revisit record."""

    def make(writer: WARCWriter) -> Any:  # noqa: ANN401  warcio has no types
        head = StatusAndHeaders(status, [("X-Again", "yes")], protocol="HTTP/1.1") if status else None
        url, timestamp = of or ("http://elsewhere.example/", "2000-01-01T00:00:00Z")
        record = writer.create_revisit_record(uri, digest, url, timestamp, head, {"WARC-Date": date})
        if of is None:
            record.rec_headers.remove_header("WARC-Refers-To-Target-URI")
            record.rec_headers.remove_header("WARC-Refers-To-Date")
        return record

    return make


def write(path: Path, *records: Callable[[WARCWriter], Any], gzip: bool = True) -> Path:
    """Write a WARC."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=gzip)
        for make in records:
            writer.write_record(make(writer))
    return path


def digest_of(body: bytes) -> str:
    """Return the digest that warcio computes for a payload."""
    import base64
    import hashlib

    return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()  # noqa: S324  what WARCs have


def run(task: Coroutine[Any, Any, T]) -> T:
    """Run an awaitable to completion."""
    return asyncio.run(task)


def collect_all(captures: AsyncIterator[Capture]) -> list[Capture]:
    """Return everything that an async iterator yields."""
    return run(helpers.collect_captures(captures))


def body_of(fetched: FetchedCapture | None) -> bytes:
    """Return the body of a fetched capture."""
    assert fetched is not None
    with fetched.body:
        return fetched.body.read()


def files(folder: Path, **options: Any) -> WarcFilesClient:  # noqa: ANN401  those of the class
    """Return a client for a folder."""
    return WarcFilesClient(archive(folder), **options)
