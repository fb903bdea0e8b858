"""Single records of Common Crawl: one gzip member out of a WARC of a gigabyte, by HTTP Range."""

import asyncio
import re
import tempfile
from urllib.parse import quote

from unlost.archives.archive import Archive, Work
from unlost.archives.asking.question import Asks, Question, Reply
from unlost.archives.bodies import warc_copy
from unlost.errors import ArchiveFileError, FailedError
from unlost.formats import warc
from unlost.formats.capture import Capture
from unlost.formats.warc import StoredRecord

MAX_RECORD_BYTES = 64 << 20
"""The largest record that is fetched, compressed. Common Crawl cuts bodies at 1 MiB, and means to do so at 5 MiB."""

_MAX_WHOLE_BYTES = 8 << 20
"""Of a WARC that a server gives as a whole, because it knows no ranges."""

_FILENAME = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:\d+|\*)", re.ASCII)


class CrawlRecords:
    """Fetches records."""

    def __init__(self, archive: Archive, courier: Asks) -> None:
        self._archive = archive
        self._courier = courier

    async def open(self, capture: Capture, filename: str, offset: int, length: int) -> StoredRecord | None:
        """Return the record of a capture; None if its file is gone. Raises FailedError, NotNowError."""
        if not _FILENAME.fullmatch(filename) or length == 0:
            raise self._failed("expected the name of a WARC and a length, found something else", "malformed")
        if length > MAX_RECORD_BYTES:
            raise self._failed(f"expected a record of at most {MAX_RECORD_BYTES} bytes, found {length}", "too-large")
        url = (self._archive.replay or "").replace("{filename}", quote(filename))
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "Accept-Encoding": "identity"}
        question = Question(url, Work.REPLAY, headers, max(length, _MAX_WHOLE_BYTES))
        reply = await self._courier.ask(self._archive, question)
        with reply.body:
            if reply.status in (404, 410):
                return None
            self._seek(reply, offset, length)
            return await asyncio.to_thread(self._read, reply, capture, length)

    def _seek(self, reply: Reply, offset: int, length: int) -> None:
        """Go to where the record begins in an answer. Raises FailedError if it is not in it."""
        if reply.status == 200:
            if reply.size < offset + length:
                raise self._failed("expected a part of a file, found another file", "malformed")
            reply.body.seek(offset)
            return
        if reply.status == 416:
            raise self._failed(f"its index says {offset}, and its file ends before that", "status")
        if reply.status != 206:
            raise self._failed(f"expected a part of a file, found status {reply.status}", "status")
        said = _CONTENT_RANGE.fullmatch((reply.header("Content-Range") or "").strip())
        if said is None or int(said[1]) != offset or int(said[2]) > offset + length - 1:
            raise self._failed("expected the part of a file that was asked for, found another", "malformed")
        if reply.size != int(said[2]) - offset + 1:
            raise self._failed("expected the part of a file that was asked for, found less", "reset")

    def _read(self, reply: Reply, capture: Capture, length: int) -> StoredRecord:
        """Return the record in an answer. What was opened stays readable although its file has no name any more."""
        with tempfile.NamedTemporaryFile(prefix="unlost-record-") as file:
            left = length
            while left and (piece := reply.body.read(min(left, 1 << 16))):
                file.write(piece)
                left -= len(piece)
            file.flush()
            try:
                record = warc.open_record(file.name, 0)
            except ArchiveFileError as error:
                message = "expected a record where the index has one, found something else"
                raise self._failed(message, "malformed") from error
        warc_copy.check_record(record, capture, self._archive)
        return record

    def _failed(self, message: str, kind: str) -> FailedError:
        return FailedError(message, self._archive.id, kind)
