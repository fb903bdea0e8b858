"""Python model of the scanner of archive files: everything in memory, independent of `unlost._core`.

It returns records (offset, skip, length, type, URI, date, digest, status, media type, whether truncated) and problems
(kind, offset) of plain and gzipped WARCs. Header size limits, zstd and ARC are covered by tests by example.
"""

import base64
import hashlib
import re
import zlib
from dataclasses import dataclass, field

_STARTS_RECORD = re.compile(rb"WARC/[0-9]")
_NEXT_RECORD = re.compile(rb"\n(?=WARC/[0-9])")
_WITHOUT_DIGEST = {"revisit", "request", "warcinfo"}


@dataclass(frozen=True)
class Record:
    """A record as read by the model."""

    offset: int
    skip: int
    length: int | None
    type: str
    uri: str | None
    date: str | None
    digest: str | None
    status: int | None
    mime: str | None
    is_short: bool


@dataclass
class Member:
    """The text of a gzip member, or of a whole plain file, with its position and damage."""

    start: int
    end: int | None
    text: bytes
    damage: str | None = None
    after_garbage: bool = False


@dataclass
class Model:
    """Reads a file and collects `records` and `problems`."""

    data: bytes
    records: list[Record] = field(default_factory=list)
    problems: list[tuple[str, int]] = field(default_factory=list)

    def read(self) -> "Model":
        """Read the whole file."""
        self.is_plain = not self.data.startswith(b"\x1f\x8b")
        self.members = [Member(0, len(self.data), self.data)] if self.is_plain else self._gzip_members()
        self.at, self.position, self.count = 0, 0, 0
        while self.at < len(self.members):
            self._skip_line_ends()
            if not self._rest():
                self._next_member()
            elif _STARTS_RECORD.match(self._rest()):
                self._record()
            else:
                self._garbage()
        return self

    def _gzip_members(self) -> list[Member]:
        members: list[Member] = []
        at = 0
        garbage = False
        while at < len(self.data):
            header = gzip_header(self.data[at:])
            if header is None:
                found = self._find_member(at)
                self.problems.append(("garbage", at))
                at, garbage = found, True
                continue
            if header == 0:
                self.problems.append(("truncated-gzip", at))
                break
            member = inflate(self.data, at, header)
            member.after_garbage, garbage = garbage, False
            members.append(member)
            if member.damage:
                self.problems.append((member.damage, at))
            at = self._find_member(at + 1) if member.damage or member.end is None else member.end
        return members

    def _find_member(self, at: int) -> int:
        while (at := self.data.find(b"\x1f\x8b\x08", at)) >= 0:
            header = gzip_header(self.data[at:])
            if header and _STARTS_RECORD.match(inflate(self.data, at, header).text):
                return at
            at += 1
        return len(self.data)

    def _rest(self) -> bytes:
        return self.members[self.at].text[self.position :]

    def _next_member(self) -> None:
        self.at, self.position, self.count = self.at + 1, 0, 0

    def _offset(self) -> int:
        return self.position if self.is_plain else self.members[self.at].start

    def _skip_line_ends(self) -> None:
        rest = self._rest()
        self.position += len(rest) - len(rest.lstrip(b"\r\n"))

    def _skip_to_record(self) -> None:
        rest = self._rest()
        found = _NEXT_RECORD.search(rest)
        self.position += found.end() if found else len(rest)

    def _garbage(self) -> None:
        self.problems.append(("garbage", self._offset()))
        self._skip_to_record()

    def _enter_continuation(self) -> bool:
        """Enter the next member if the current record continues in it."""
        before = self.members[self.at]
        self.is_past_the_end = False
        if before.damage or self.is_plain or self.at + 1 == len(self.members):
            return False
        self._next_member()
        here = self.members[self.at]
        goes_on = not here.after_garbage and not _STARTS_RECORD.match(here.text)
        self.is_past_the_end = not goes_on
        self.count = int(goes_on)
        return goes_on

    def _take(self, count: int) -> tuple[bytes, bool]:
        """Consume `count` bytes of text; return whether they are incomplete."""
        taken = self._rest()[:count]
        self.position += len(taken)
        while len(taken) < count:
            if self._rest():
                more = self._rest()[: count - len(taken)]
                self.position += len(more)
                taken += more
            elif not self._enter_continuation():
                return taken, True
        return taken, False

    def _head(self) -> bytes | None:
        head = b""
        while not re.search(rb"\n\r?\n\Z", head):
            byte, is_cut = self._take(1)
            if is_cut:
                return None
            head += byte
        return head

    def _record(self) -> None:
        offset, is_alone = self._offset(), self.count == 0
        skip = 0 if self.is_plain else self.position
        self.count += 1
        head = self._head()
        if head is None:
            self.problems.append(("short-header", offset))
            return
        fields, bad_lines = read_fields(head.partition(b"\n")[2])
        if bad_lines:
            self.problems.append(("bad-header", offset))
        size = fields.get("content-length", b"")
        if not re.fullmatch(rb"[0-9]+", size):
            self.problems.append(("no-length", offset))
            self._skip_line_ends()
            if not _STARTS_RECORD.match(self._rest()):
                self._skip_to_record()
            return
        kind = ascii_lower(fields.get("warc-type", b"").decode("utf-8", "replace"))
        if not kind:
            self.problems.append(("no-type", offset))
        block, is_short = self._take(int(size))
        if is_short:
            self.problems.append(("short-block", offset))
        length = self._length(offset, is_alone=is_alone, is_short=is_short)
        uri = normalize_target_uri(fields.get("warc-target-uri", b"")) or None
        status, mime, digest = self._payload(kind, uri, fields, block, offset, is_short=is_short)
        date = fields["warc-date"].decode("utf-8", "replace") if "warc-date" in fields else None
        self.records.append(Record(offset, skip, length, kind, uri, date, digest, status, mime, is_short))

    def _length(self, offset: int, *, is_alone: bool, is_short: bool) -> int | None:
        if self.is_plain:
            return self.position - offset
        ended = self.members[self.at]
        # A valid member without text belongs to the record.
        if is_short and (self.is_past_the_end or (self.position == 0 and ended.damage)):
            ended = self.members[self.at - 1]
        if not is_short:
            self._skip_line_ends()
            if self._rest() and not _STARTS_RECORD.match(self._rest()):
                self._garbage()
        if is_alone and (is_short or not self._rest()):
            return None if ended.end is None else ended.end - offset
        shared = ("shared-member", self.members[self.at].start if is_alone else offset)
        if shared not in self.problems:
            self.problems.append(shared)
        return None

    def _payload(
        self, kind: str, uri: str | None, fields: dict[str, bytes], block: bytes, offset: int, *, is_short: bool
    ) -> tuple[int | None, str | None, str | None]:
        status, payload = None, block
        digest = fields["warc-payload-digest"].decode("utf-8", "replace") if "warc-payload-digest" in fields else None
        if kind in ("response", "revisit") and re.match("https?:", uri or "", re.IGNORECASE):
            mime = None
            if block.startswith(b"HTTP/"):
                found = re.search(rb"\n\r?\n", block)
                head, payload = (block[: found.end()], block[found.end() :]) if found else (block, b"")
                line, _, lines = head.partition(b"\n")
                words = re.split(rb"[ \t\n\r\f]+", line)
                if len(words) > 1 and re.fullmatch(rb"[0-9]{3}", words[1]):
                    status = int(words[1])
                mime = media_type(read_fields(lines)[0].get("content-type", b""))
            if status is None and block and not is_short and kind == "response":
                self.problems.append(("bad-http", offset))
        else:
            mime = media_type(fields.get("content-type", b""))
            if kind != "request" and digest is None and "warc-block-digest" in fields:
                digest = fields["warc-block-digest"].decode("utf-8", "replace")
        if digest is None and not is_short and kind not in _WITHOUT_DIGEST:
            digest = "sha1:" + base64.b32encode(hashlib.sha1(payload, usedforsecurity=False).digest()).decode()
        return status, mime, digest


def gzip_header(data: bytes) -> int | None:
    """Return the length of a gzip header; 0 if the file ends in it, None if there is none."""
    if not data or not b"\x1f\x8b\x08".startswith(data[:3]):
        return None
    if len(data) < 10:
        return 0
    flags, size = data[3], 10
    if flags & 0xE0:
        return None
    if flags & 4:
        size += 2 + int.from_bytes(data[size : size + 2], "little")
    for flag in (8, 16):
        if flags & flag:
            end = data.find(b"\0", size)
            if end < 0:
                return 0
            size = end + 1
    size += 2 if flags & 2 else 0
    return size if size <= len(data) else 0


def inflate(data: bytes, start: int, header: int) -> Member:
    """Decompress one member byte by byte, so that everything before the damage is returned."""
    stream, text, at = zlib.decompressobj(-15), b"", start + header
    while not stream.eof:
        if at == len(data):
            return Member(start, at, text, "truncated-gzip")
        try:
            text += stream.decompress(data[at : at + 1])
        except zlib.error:
            return Member(start, None, text, "corrupt-gzip")
        at += 1
    if len(data) < at + 8:
        return Member(start, len(data), text, "truncated-gzip")
    trailer = zlib.crc32(text).to_bytes(4, "little") + (len(text) & 0xFFFFFFFF).to_bytes(4, "little")
    return Member(start, at + 8, text, None if data[at : at + 8] == trailer else "bad-checksum")


def read_fields(lines: bytes) -> tuple[dict[str, bytes], int]:
    """Return the first value of each header field, and the number of invalid lines."""
    fields: list[tuple[str, bytes]] = []
    bad_lines = 0
    for line in lines.split(b"\n"):
        text = line.strip(b" \t\n\r\f")
        if not text:
            continue
        if line[:1] in (b" ", b"\t") and fields:
            fields[-1] = (fields[-1][0], fields[-1][1] + b" " + text)
        elif b":" in text:
            name, _, value = text.partition(b":")
            fields.append((name.rstrip(b" \t\n\r\f").decode("utf-8", "replace").lower(), value.lstrip(b" \t\n\r\f")))
        else:
            bad_lines += 1
    return dict(reversed(fields)), bad_lines


def normalize_target_uri(value: bytes) -> str:
    """Return a URI without angle brackets, with invalid characters escaped."""
    value = value.strip(b" \t\n\r\f")
    if value.startswith(b"<") and value.endswith(b">") and len(value) > 1:
        value = value[1:-1]
    text = value.decode("utf-8", "surrogateescape")
    return "".join(
        f"%{ord(char) & 0xFF:02X}" if char <= " " or char == "\x7f" or "\udc80" <= char <= "\udcff" else char
        for char in text
    )


def media_type(value: bytes) -> str | None:
    """Return a media type in lower case without parameters."""
    name = re.split(rb"[;, \t\n\r\f]", value.strip(b" \t\n\r\f"))[0].decode("utf-8", "replace")
    return ascii_lower(name) or None


def ascii_lower(text: str) -> str:
    """Convert ASCII letters to lower case."""
    return "".join(char.lower() if char.isascii() else char for char in text)
