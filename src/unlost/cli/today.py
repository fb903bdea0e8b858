"""Which day it is, for what expires or grows old: the one place where a command that makes a file asks the clock."""

import os
from datetime import UTC, date, datetime

from unlost.errors import DateError, UsageError
from unlost.holdings.provenance import build_time


def the_day(given: str | None) -> date:
    """Return the day that `--date` names, else the variable SOURCE_DATE_EPOCH, else today in UTC. Raises UsageError."""
    from unlost import dates  # noqa: PLC0415  start-up

    told = the_moment(given)
    return dates.to_datetime(told).date() if told else datetime.now(UTC).date()


def the_build_time(given: str | None) -> str:
    """Return what `--date` names, else the variable SOURCE_DATE_EPOCH, else now, as 14 digits. Raises UsageError."""
    return the_moment(given) or build_time()


def the_moment(given: str | None) -> str | None:
    """Return what `--date` names, else the variable SOURCE_DATE_EPOCH, as 14 digits; None if neither says anything.

    For headers: what is made of the same files is the same on every day, unless it is told the day. Raises UsageError.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None and not epoch:
        return None
    from unlost import dates  # noqa: PLC0415  start-up

    digits: str | None
    try:
        if given is not None:
            digits = dates.pad(given) if given.isdigit() else dates.from_iso(given)
        else:
            digits = dates.from_epoch(epoch) if epoch else None
        if digits is not None:
            dates.to_datetime(digits)
    except DateError as error:
        raise UsageError(f"{'SOURCE_DATE_EPOCH' if given is None else '--date'}: {error}") from error
    return digits
