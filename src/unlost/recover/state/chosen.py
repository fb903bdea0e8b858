"""The copies that a recovery chose, as its state has them: read by somebody who believes nothing of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from unlost import dates
from unlost.errors import DateError
from unlost.formats.capture import Capture
from unlost.recover.record import Record
from unlost.state_file import text_of

_DIGITS = 14


class OddError(Exception):
    """A record that is not as a recovery writes it. uri: of its resource."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.uri = uri


@dataclass(frozen=True, slots=True)
class Chosen:
    """The copy that a recovery chose for a resource.

    name: as the state has it. uri, datetime, status, mime, migrated: of the copy. digest: of its body as it is kept.
    file, offset: of its record. is_revisit: whether that has no body of its own.
    archive: that it came from; urim: its address there. recovered: when it was kept, 14 digits.
    """

    name: str
    uri: str
    datetime: str
    status: int | None
    mime: str | None
    migrated: bool | None
    digest: str | None
    file: str
    offset: int
    is_revisit: bool
    archive: str | None
    urim: str | None
    recovered: str


def chosen_of(name: object, uri: str, file: object, offset: object, data: str) -> Chosen:
    """Return a copy as a state has it, of which nothing is believed. Raises OddError."""
    with _odd(uri):
        values = json.loads(data)
        chosen = _chosen(name, values["capture"], file, offset, values["recovered"])
        dates.to_datetime(chosen.recovered)
        return chosen


def record_of(name: str, listed_digest: object, file: object, offset: object, size: object, data: str) -> Record:
    """Return the whole record of a copy in the same way; its capture has no key. Raises OddError."""
    with _odd(name):
        values = json.loads(data)
        capture = values["capture"]
        chosen = _chosen(name, capture, file, offset, values["recovered"])
        if not isinstance(size, int):
            raise TypeError
        length, revisited = capture.get("length"), capture.get("revisit_of")
        return Record(
            Capture(
                chosen.uri,
                None,
                chosen.datetime,
                status=chosen.status,
                mime=chosen.mime,
                digest=chosen.digest,
                length=length if isinstance(length, int) else None,
                redirect=_text_or_none(capture.get("redirect")),
                archive=chosen.archive,
                urim=chosen.urim,
                migrated=chosen.migrated,
                revisit=chosen.is_revisit,
                revisit_of=None if revisited is None else (_text(revisited[0]), _text(revisited[1])),
            ),
            _text_or_none(text_of(listed_digest)),
            _text_or_none(values.get("source")),
            _text_or_none(values.get("truncated")),
            chosen.recovered,
            chosen.file,
            chosen.offset,
            size,
        )


@contextmanager
def _odd(uri: str) -> Iterator[None]:
    """Turn whatever is wrong with a record into an OddError."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, DateError):
        raise OddError(uri) from None


def _chosen(name: object, capture: dict[str, object], file: object, offset: object, recovered: object) -> Chosen:
    """Raise what `_odd` turns into an OddError for what is none."""
    status, migrated = capture.get("status"), capture.get("migrated")
    if not isinstance(status, int | None) or not isinstance(migrated, bool | None) or not isinstance(offset, int):
        raise TypeError
    mime, digest, archive, urim = (_text_or_none(capture.get(each)) for each in ("mime", "digest", "archive", "urim"))
    return Chosen(
        _text(name), _text(capture["uri"]), _date(capture["datetime"]), status, mime, migrated, digest, _text(file),
        offset, bool(capture.get("revisit")), archive, urim, _date(recovered),
    )  # fmt: skip


def check_date(value: object, uri: str) -> None:
    """Raise OddError for what is no moment of any calendar. uri: of its resource."""
    with _odd(uri):
        dates.to_datetime(_text(value))


def _date(value: object) -> str:
    text = _text(value)
    if len(text) != _DIGITS or not text.isascii() or not text.isdigit():
        raise ValueError(text)
    return text


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
