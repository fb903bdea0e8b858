"""Which day it is, for what expires: the one place where a command that makes a file asks the clock."""

import os
from datetime import UTC, date, datetime

from unlost import dates
from unlost.errors import DateError, UsageError


def the_day(given: str | None) -> date:
    """Return the day that `--date` names, else the variable SOURCE_DATE_EPOCH, else today in UTC. Raises UsageError."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None and not epoch:
        return datetime.now(UTC).date()
    try:
        digits = dates.from_epoch(epoch or "") if given is None else _digits(given)
        return dates.to_datetime(digits).date()
    except DateError as error:
        raise UsageError(f"{'SOURCE_DATE_EPOCH' if given is None else '--date'}: {error}") from error


def _digits(text: str) -> str:
    return dates.pad(text) if text.isdigit() else dates.from_iso(text)
