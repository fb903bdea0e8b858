"""Single records of Common Crawl: one gzip member out of a WARC of a gigabyte, by HTTP Range."""

import asyncio
import re
import tempfile
from urllib.parse import quote

from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, HttpRequest, HttpResponse
from unlost.archives.bodies import warc_copy
from unlost.errors import ArchiveFileError, FailedError
from unlost.formats import warc
from unlost.formats.capture import Capture
from unlost.formats.warc import StoredRecord

MAX_RECORD_BYTES = 64 << 20
"""The largest record that is fetched, compressed. Common Crawl cuts bodies at 1 MiB, and means to do so at 5 MiB."""

_MAX_WHOLE_BYTES = 8 << 20
"""Of a WARC that a server gives as a whole, because it knows no ranges."""

_WARC_FILENAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:\d+|\*)", re.ASCII)


class CommonCrawlRecords:
    """Fetches records."""

    def __init__(self, archive: Archive, client: HttpClient) -> None:
        self._archive = archive
        self._client = client

    async def fetch_record(self, capture: Capture, filename: str, offset: int, length: int) -> StoredRecord | None:
        """Return the record of a capture; None if its file is gone. Raises FailedError, NotNowError."""
        if not _WARC_FILENAME.fullmatch(filename) or length == 0:
            raise self._failed_error("expected the name of a WARC and a length, found something else", "malformed")
        if length > MAX_RECORD_BYTES:
            raise self._failed_error(
                f"expected a record of at most {MAX_RECORD_BYTES} bytes, found {length}", "too-large"
            )
        url = (self._archive.replay or "").replace("{filename}", quote(filename))
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "Accept-Encoding": "identity"}
        question = HttpRequest(url, RequestKind.REPLAY, headers, max(length, _MAX_WHOLE_BYTES))
        reply = await self._client.send(self._archive, question)
        with reply.body:
            if reply.status in (404, 410):
                return None
            self._seek(reply, offset, length)
            return await asyncio.to_thread(self._read, reply, capture, length)

    def _seek(self, response: HttpResponse, offset: int, length: int) -> None:
        """Go to where the record begins in an answer. Raises FailedError if it is not in it."""
        if response.status == 200:
            if response.size < offset + length:
                raise self._failed_error("expected a part of a file, found another file", "malformed")
            response.body.seek(offset)
            return
        if response.status == 416:
            raise self._failed_error(f"its index says {offset}, and its file ends before that", "status")
        if response.status != 206:
            raise self._failed_error(f"expected a part of a file, found status {response.status}", "status")
        said = _CONTENT_RANGE.fullmatch((response.header("Content-Range") or "").strip())
        if said is None or int(said[1]) != offset or int(said[2]) > offset + length - 1:
            raise self._failed_error("expected the part of a file that was asked for, found another", "malformed")
        if response.size != int(said[2]) - offset + 1:
            raise self._failed_error("expected the part of a file that was asked for, found less", "reset")

    def _read(self, response: HttpResponse, capture: Capture, length: int) -> StoredRecord:
        """Return the record in an answer. What was opened stays readable although its file has no name any more."""
        with tempfile.NamedTemporaryFile(prefix="unlost-record-") as file:
            left = length
            while left and (piece := response.body.read(min(left, 1 << 16))):
                file.write(piece)
                left -= len(piece)
            file.flush()
            try:
                record = warc.open_warc_record(file.name, 0)
            except ArchiveFileError as error:
                message = "expected a record where the index has one, found something else"
                raise self._failed_error(message, "malformed") from error
        warc_copy.check_record_identity(record, capture, self._archive)
        return record

    def _failed_error(self, message: str, kind: str) -> FailedError:
        return FailedError(message, self._archive.id, kind)
