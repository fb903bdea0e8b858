"""The copies that a recovery chose, as its state has them: read by somebody who believes nothing of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from unlost import dates
from unlost.errors import DateError
from unlost.formats.capture import Capture
from unlost.recover.record import RecoveryRecord
from unlost.state_file import decode_text

_DATE_LENGTH = 14


class InvalidRecordError(Exception):
    """A record that is not as a recovery writes it. uri: of its resource."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.uri = uri


@dataclass(frozen=True, slots=True)
class ChosenCapture:
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


def parse_chosen(name: object, uri: str, file: object, offset: object, data: str) -> ChosenCapture:
    """Return a copy as a state has it, of which nothing is believed. Raises OddError."""
    with _raise_invalid_record(uri):
        values = json.loads(data)
        chosen = _chosen_capture(name, values["capture"], file, offset, values["recovered"])
        dates.to_datetime(chosen.recovered)
        return chosen


def parse_record(
    name: str, listed_digest: object, file: object, offset: object, size: object, data: str
) -> RecoveryRecord:
    """Return the whole record of a copy in the same way; its capture has no key. Raises OddError."""
    with _raise_invalid_record(name):
        values = json.loads(data)
        capture = values["capture"]
        chosen = _chosen_capture(name, capture, file, offset, values["recovered"])
        if not isinstance(size, int):
            raise TypeError
        length, revisited = capture.get("length"), capture.get("revisit_of")
        return RecoveryRecord(
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
            _text_or_none(decode_text(listed_digest)),
            _text_or_none(values.get("source")),
            _text_or_none(values.get("truncated")),
            chosen.recovered,
            chosen.file,
            chosen.offset,
            size,
        )


@contextmanager
def _raise_invalid_record(uri: str) -> Iterator[None]:
    """Turn whatever is wrong with a record into an OddError."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, DateError):
        raise InvalidRecordError(uri) from None


def _chosen_capture(
    name: object, capture: dict[str, object], file: object, offset: object, recovered: object
) -> ChosenCapture:
    """Raise what `_odd` turns into an OddError for what is none."""
    status, migrated = capture.get("status"), capture.get("migrated")
    if not isinstance(status, int | None) or not isinstance(migrated, bool | None) or not isinstance(offset, int):
        raise TypeError
    mime, digest, archive, urim = (_text_or_none(capture.get(each)) for each in ("mime", "digest", "archive", "urim"))
    return ChosenCapture(
        _text(name), _text(capture["uri"]), _date(capture["datetime"]), status, mime, migrated, digest, _text(file),
        offset, bool(capture.get("revisit")), archive, urim, _date(recovered),
    )  # fmt: skip


def check_date(value: object, uri: str) -> None:
    """Raise OddError for what is no moment of any calendar. uri: of its resource."""
    with _raise_invalid_record(uri):
        dates.to_datetime(_text(value))


def _date(value: object) -> str:
    text = _text(value)
    if len(text) != _DATE_LENGTH or not text.isascii() or not text.isdigit():
        raise ValueError(text)
    return text


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
