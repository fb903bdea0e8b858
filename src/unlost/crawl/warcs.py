"""Where a crawl keeps what it fetched: WARCs of requests and responses, whole whatever happens."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol

from unlost.clock import Clock
from unlost.crawl.visitor import Answer
from unlost.formats.warc_writing.digests import digests_of
from unlost.formats.warc_writing.fields import address
from unlost.formats.warc_writing.folder import WarcFolder
from unlost.formats.warc_writing.http_head import http_head
from unlost.formats.warc_writing.kept_record import ForeignError, KeptRecord
from unlost.formats.warc_writing.members import TornError, packed
from unlost.formats.warc_writing.payload import Payload, level_for
from unlost.formats.warc_writing.records import END, HTTP_REQUEST, HTTP_RESPONSE, head_of, id_of, iso
from unlost.formats.warc_writing.volumes import Volumes

MAX_BYTES = 1 << 30
"""How large a file may grow."""

NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
"""What revisits say of themselves: the server answered 304, or the body that came has the digest of the copy's."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer is kept: the name of its WARC, its offset, and the size of all its records, in bytes."""

    file: str
    offset: int
    size: int


class KnownRecords(Protocol):
    """What a state knows of the records in WARCs."""

    def ends(self) -> dict[str, int]:
        """Return for each WARC up to which byte its records are known."""
        ...

    def files_before(self, files: Iterable[str]) -> frozenset[str]:
        """Return which WARCs were there before this state was: `files`, when it is asked for the first time."""
        ...

    def whole_end(self, file: str, size: int) -> int:
        """Return where the last record of a WARC ends that lies within so many bytes."""
        ...

    def visit_again(self, file: str, end: int) -> int:
        """Put those back into the queue whose records a WARC has lost behind a byte; return how many."""
        ...

    def commit(self) -> None:
        """Make all changes last."""
        ...


@dataclass(frozen=True, slots=True)
class Original:
    """The copy that a revisit is one of: its address and its date, 14 digits."""

    uri: str
    moment: str


class CrawlWarcs:
    """The WARCs of one crawl: a folder with `unlost-00001.warc.gz`, …; one is open at a time.

    docs/crawl.md says what is in them. The state of the crawl knows where they end: what lies behind was torn by a
    kill, or is not in the state, and is cut off and fetched again.

    Everything it raises is an InputError; a call that raises has kept nothing.
    """

    def __init__(self, folder: Path, clock: Clock, software: str, *, max_bytes: int = MAX_BYTES) -> None:
        self._folder = WarcFolder(folder)
        self._volumes = Volumes(self._folder, clock, software, max_bytes)

    def agree(self, state: KnownRecords) -> None:
        """Bring files and state into agreement: whoever wrote them may have been killed, or lost power, meanwhile."""
        self._folder.make()
        ends = state.ends()
        files = dict(self._folder.files())
        before = state.files_before(files)
        for name in sorted(ends.keys() - files.keys()):
            state.visit_again(name, 0)  # somebody took it away
        for name, is_open in files.items():
            self._volumes.pass_by(name)
            with self._folder.reading(name) as file:
                size = os.fstat(file).st_size
                if name in ends:
                    end, has_copies = ends[name], True
                elif name in before:  # somebody took its state away: what is whole stays
                    end, has_copies = _whole_end(file)
                else:  # a kill came before the state knew anything in it
                    end, has_copies = 0, False
            if end > size:
                end = state.whole_end(name, size)
                state.visit_again(name, end)
                has_copies = end > 0
                if not is_open:
                    self._folder.reopen(name)
                    is_open = True  # noqa: PLW2901
            if is_open:
                self._volumes.go_on(name, end, has_copies=has_copies)
                if name in before and name not in ends:
                    self._volumes.close()
        state.commit()

    def store(self, answer: Answer, mime: str | None) -> tuple[Place, str]:
        """Keep an answer with its request, and return where, and the digest of its body.

        Raises UriError for an address that no record can have; any other InputError says that nothing can be written.
        """
        body = Payload(answer.body)
        head, _ = http_head(answer.status, answer.headers, body.length, None, None)
        digest, block = digests_of(head, body.pieces())
        number = id_of("response", answer.uri, answer.moment, digest, answer.request.decode("utf-8", "replace"))
        target, date = address(answer.uri), iso(answer.moment)
        begin = head_of(
            [
                ("WARC-Type", "response"),
                ("WARC-Record-ID", number),
                ("WARC-Target-URI", target),
                ("WARC-Date", date),
                ("WARC-IP-Address", answer.peer),
                ("WARC-Payload-Digest", digest),
                ("WARC-Block-Digest", block),
                ("WARC-Truncated", answer.truncated),
                ("Content-Type", HTTP_RESPONSE),
                ("Content-Length", str(len(head) + body.length)),
            ]
        )
        asked = _request(answer, target, date, number)
        text = chain([begin + head], body.pieces(), [END])
        size = len(begin) + len(head) + body.length
        members = chain(packed(text, size, level_for(mime)), packed([asked], len(asked)))
        place = self._volumes.append(members, size + len(asked))
        answer.body.seek(0)
        return Place(*place), digest

    def store_revisit(self, answer: Answer, original: Original, digest: str | None) -> Place:
        """Keep that a page is still what a copy of it holds, without its body, and return where.

        digest: of the body that came, which must be the copy's; None of an answer 304. Raises as `store`.
        """
        head, _ = http_head(answer.status, answer.headers, None, None, None)
        _, block = digests_of(head, ())
        profile = NOT_MODIFIED if digest is None else SAME_PAYLOAD
        number = id_of("revisit", answer.uri, answer.moment, profile, answer.request.decode("utf-8", "replace"))
        target, date = address(answer.uri), iso(answer.moment)
        begin = head_of(
            [
                ("WARC-Type", "revisit"),
                ("WARC-Record-ID", number),
                ("WARC-Target-URI", target),
                ("WARC-Date", date),
                ("WARC-IP-Address", answer.peer),
                ("WARC-Profile", profile),
                ("WARC-Refers-To-Target-URI", address(original.uri)),
                ("WARC-Refers-To-Date", iso(original.moment)),
                ("WARC-Payload-Digest", digest),
                ("WARC-Block-Digest", block),
                ("Content-Type", HTTP_RESPONSE),
                ("Content-Length", str(len(head))),
            ]
        )
        text, asked = begin + head + END, _request(answer, target, date, number)
        members = chain(packed([text], len(text)), packed([asked], len(asked)))
        return Place(*self._volumes.append(members, len(text) + len(asked)))

    def sync(self) -> None:
        """Return when everything that was stored is on the disk."""
        self._volumes.sync()

    def close(self) -> None:
        """End the open file: it gets its final name."""
        self._volumes.close()


def _request(answer: Answer, target: str, date: str, response: str) -> bytes:
    """Return the record of what was asked."""
    block = answer.request
    _, digest = digests_of(block, ())
    fields = [
        ("WARC-Type", "request"),
        ("WARC-Record-ID", id_of("request", response)),
        ("WARC-Target-URI", target),
        ("WARC-Date", date),
        ("WARC-Concurrent-To", response),
        ("WARC-Block-Digest", digest),
        ("Content-Type", HTTP_REQUEST),
        ("Content-Length", str(len(block))),
    ]
    return head_of(fields) + block + END


def _whole_end(file: int) -> tuple[int, bool]:
    """Return where the last whole record of a file ends, and whether there is any behind the first one."""
    end, count, size = 0, 0, os.fstat(file).st_size
    try:
        while end < size:
            end = KeptRecord(file, end).end()
            count += 1
    except (TornError, ForeignError):
        pass
    return end, count > 1
