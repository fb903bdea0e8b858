"""The text of ppt files, of PowerPoint 97 and later.

A file is a tree of records, of which many may be of earlier savings: a directory, itself in pieces, says where the
current ones are. Text stands in the slides, or in an outline that they refer to. Published as [MS-PPT].
"""

from collections.abc import Iterator
from dataclasses import dataclass

from unlost.errors import DocumentError
from unlost.pages.documents.limits import DocumentLimits
from unlost.pages.documents.readers.gathered import TextCollector, TextSection
from unlost.pages.documents.readers.ole import OleStreams, read_uint

_POWERPOINT_ENCRYPTED = 0xF3D1C4DF

_SLIDE, _NOTES_SLIDE = 0x03EE, 0x03F0
_SLIDE_PERSIST = 0x03F3
_LIST_WITH_TEXT = 0x0FF0
_OUTLINE_REFERENCE = 0x0F9E
_TEXT_CHARS, _TEXT_BYTES = 0x0FA0, 0x0FA8
_USER_EDIT, _PERSIST_DIRECTORY = 0x0FF5, 0x1772

_LISTS = {0: TextSection.TEXT, 2: TextSection.NOTES}  # the list of masters is 1
_MAX_RECORD_DEPTH = 64  # groups in groups; a file of PowerPoint's has some ten


@dataclass(frozen=True, slots=True)
class _Record:
    """A record: what it is, which of its kind, where its content begins and ends, whether that is records again."""

    kind: int
    instance: int
    start: int
    end: int
    is_container: bool


def read_ppt(body: bytes, gathered: TextCollector, _limits: DocumentLimits) -> None:
    """Gather the text of the slides in order, then the notes. Masters and comments are left out."""
    streams = OleStreams(body)
    user = streams.read("Current User")
    if read_uint(user, 12) == _POWERPOINT_ENCRYPTED:
        raise DocumentError("it can be read with a password only", "encrypted")
    stream = streams.read("PowerPoint Document")
    places, document = _read_persist_directory(stream, read_uint(user, 16))
    for record in _children(stream, _read_record(stream, places.get(document, -1))):
        if record.kind == _LIST_WITH_TEXT and record.instance in _LISTS:
            _read_slide_list(stream, record, places, gathered, _LISTS[record.instance])


def _read_slide_list(
    stream: bytes, record: _Record, places: dict[int, int], gathered: TextCollector, where: TextSection
) -> None:
    """Gather the text of the slides, or notes, that a list names; the outline of each stands behind its name."""
    slides: list[tuple[int, list[str]]] = []
    for child in _children(stream, record):
        if child.kind == _SLIDE_PERSIST:
            slides.append((read_uint(stream, child.start), []))
        elif slides and (text := _record_text(stream, child)) is not None:
            slides[-1][1].append(text)
    for reference, outline in slides:
        place = places.get(reference)
        slide = _read_record(stream, place) if place is not None else None
        if slide is None or slide.kind not in {_SLIDE, _NOTES_SLIDE}:
            gathered.is_truncated = True
            continue
        for part in _descendants(stream, slide):
            text = _record_text(stream, part)
            if text is None and part.kind == _OUTLINE_REFERENCE:
                index = read_uint(stream, part.start)
                text = outline[index] if index < len(outline) else None
            if text is not None:
                gathered.add(text + "\n", where)


def _record_text(stream: bytes, record: _Record) -> str | None:
    """Return what a record of text says; None if it is of another kind. Lines end by controls, which are blanks."""
    content = stream[record.start : record.end]
    if record.kind == _TEXT_CHARS:
        return content.decode("utf-16-le", "replace")
    if record.kind == _TEXT_BYTES:
        return content.decode("latin-1")
    return None


def _read_persist_directory(stream: bytes, edit: int) -> tuple[dict[int, int], int]:
    """Return where the records are by their numbers, and the number of the document.

    edit: where the last saving is described; each description leads to the one before it.
    """
    places: dict[int, int] = {}
    document = -1
    seen: set[int] = set()
    while edit and edit not in seen:
        seen.add(edit)
        record = _read_record(stream, edit)
        if record.kind != _USER_EDIT:
            raise DocumentError("the list of its savings is damaged", "damaged")
        directory = _read_record(stream, read_uint(stream, record.start + 12))
        if directory.kind != _PERSIST_DIRECTORY:
            raise DocumentError("its directory is damaged", "damaged")
        document = read_uint(stream, record.start + 16) if document < 0 else document
        at = directory.start
        while at < directory.end:
            first = read_uint(stream, at)
            count, first = first >> 20, first & 0xFFFFF
            for index in range(count):
                places.setdefault(first + index, read_uint(stream, at + 4 + 4 * index))
            at += 4 + 4 * count
        edit = read_uint(stream, record.start + 8)
    return places, document


def _read_record(stream: bytes, at: int) -> _Record:
    head = read_uint(stream, at, 2)
    start = at + 8
    end = min(start + read_uint(stream, at + 4), len(stream))
    return _Record(read_uint(stream, at + 2, 2), head >> 4, start, end, head & 0xF == 0xF)


def _children(stream: bytes, record: _Record) -> Iterator[_Record]:
    at = record.start
    while at + 8 <= record.end:
        child = _read_record(stream, at)
        yield child
        at = child.end


def _descendants(stream: bytes, record: _Record, depth: int = 0) -> Iterator[_Record]:
    """Yield the records in a record that are no containers, in order."""
    for child in _children(stream, record):
        if not child.is_container:
            yield child
        elif depth < _MAX_RECORD_DEPTH:
            yield from _descendants(stream, child, depth + 1)
