"""The list of pages in a WACZ: what somebody who opens it may begin with."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from unlost import dates
from unlost.formats.sorting import sort_lines
from unlost.formats.warc_writing.fields import escape_target_uri
from unlost.pages.verdicts.answer import PageResponse, ClassifierContext
from unlost.pages.verdicts.seen import ParsedPage
from unlost.recover.export.archive_files.chosen_copies import ExportedRecord
from unlost.recover.export.archive_files.whole_records import VerifiedRecord

_PAGES_HEADER = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
_HTML = ("text/html", "application/xhtml+xml")
_OK = 200
_MAX_TITLE = 300  # characters
_ORDER_DIGITS = 12  # of a number in front of a line, by which lines are sorted


@dataclass(frozen=True, slots=True)
class WaczPage:
    """A page. order: as they were found. uri: as its record has it. datetime: 14 digits. title: None without one."""

    order: int
    uri: str
    datetime: str
    title: str | None


def page_title(found: VerifiedRecord) -> str | None:
    """Return the title of a record of HTML with a body; None if it has none."""
    capture = found.record.capture
    told = next((value for name, value in found.headers if name.lower() == "content-type"), "")
    charset = told.lower().partition("charset=")[2].partition(";")[0].strip("\"' ") or None
    answer = PageResponse(
        capture.uri, capture.datetime, capture.status, capture.mime, found.body_prefix, found.headers, charset
    )
    return " ".join(ParsedPage(answer, ClassifierContext()).title.split())[:_MAX_TITLE] or None


def _is_html(found: VerifiedRecord) -> bool:
    return (found.record.capture.mime or "").partition(";")[0].strip().lower() in _HTML


class WaczPageList:
    """The pages, as they come.

    count: how many. main: the first one that was found, which is where the recovery began, if that came back.
    newest: when the last copy was recovered, 14 digits.
    """

    def __init__(self, spool: BinaryIO) -> None:
        self._spool = spool
        self._titles: dict[str, str | None] = {}  # of what others refer to, by its id
        self.count = 0
        self.main: WaczPage | None = None
        self.newest = ""

    def add(self, copy: ExportedRecord) -> None:
        """Add a copy, if it is a page: not a part of one, nor an error, nor one that was not chosen."""
        found, capture = copy.verified, copy.verified.record.capture
        self.newest = max(self.newest, found.record.recovered)
        if not _is_html(found):
            return
        title = page_title(found) if found.refers_to is None else self._titles.get(found.refers_to[0])
        if copy.is_original:
            self._titles[found.record_id] = title
        if copy.order is not None and capture.status in (_OK, None):
            self._add(WaczPage(copy.order, escape_target_uri(capture.uri), capture.datetime, title))

    def _add(self, page: WaczPage) -> None:
        self.count += 1
        if self.main is None or page.order < self.main.order:
            self.main = page
        fields = {"id": f"{page.order}", "url": page.uri, "ts": dates.to_iso(page.datetime), "title": page.title}
        line = json.dumps({name: value for name, value in fields.items() if value is not None})
        self._spool.write(f"{page.order:0{_ORDER_DIGITS}d}{line}\n".encode())

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of `pages.jsonl`, in the order in which the pages were found."""
        yield f"{json.dumps(_PAGES_HEADER)}\n".encode()
        self._spool.seek(0)
        for line in sort_lines(self._spool):
            yield line[_ORDER_DIGITS:]
