"""Which day it is, for what expires or grows old: the one place where a command that makes a file asks the clock."""

import os
from datetime import UTC, date, datetime

from unlost.errors import DateError, UsageError
from unlost.holdings.provenance import build_time


def resolve_date(text: str | None) -> date:
    """Return the day that `--date` names, else the variable SOURCE_DATE_EPOCH, else today in UTC. Raises UsageError."""
    from unlost import dates  # noqa: PLC0415  start-up

    told = resolve_timestamp(text)
    return dates.to_datetime(told).date() if told else datetime.now(UTC).date()


def resolve_build_time(text: str | None) -> str:
    """Return what `--date` names, else the variable SOURCE_DATE_EPOCH, else now, as 14 digits. Raises UsageError."""
    return resolve_timestamp(text) or build_time()


def resolve_timestamp(text: str | None) -> str | None:
    """Return what `--date` names, else the variable SOURCE_DATE_EPOCH, as 14 digits; None if neither says anything.

    For headers: what is made of the same files is the same on every day, unless it is told the day. Raises UsageError.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None and not epoch:
        return None
    from unlost import dates  # noqa: PLC0415  start-up

    digits: str | None
    try:
        if text is not None:
            digits = dates.pad(text) if text.isdigit() else dates.from_iso(text)
        else:
            digits = dates.from_epoch(epoch) if epoch else None
        if digits is not None:
            dates.to_datetime(digits)
    except DateError as error:
        raise UsageError(f"{'SOURCE_DATE_EPOCH' if text is None else '--date'}: {error}") from error
    return digits
