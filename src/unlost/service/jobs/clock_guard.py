"""Notices a clock that jumped: until an operator confirms the time, nothing is removed by it."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from unlost.service.jobs.database import Database
from unlost.service.jobs.tables import SETTINGS

_CLOCK_SETTING = "clock"
_DAY = 86_400.0
_MAX_GAP_SECONDS = 7 * _DAY  # since the last check
_TOLERANCE_SECONDS = 300.0  # by which clocks of several machines, and two clocks of one, may differ


def _seconds_since_boot() -> float:
    """Return the seconds since the system started, also those in which it was suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ClockGuard:
    """Compares the time of the database with the last check, and with the monotonic clock.

    The last check and a jump are stored in the database: they outlive the process, and hold for all processes.
    """

    def __init__(self, database: Database, monotonic: Callable[[], float] = _seconds_since_boot) -> None:
        self._database = database
        self._monotonic = monotonic
        self._last: tuple[float, float] | None = None  # the time, and the monotonic clock
        self._confirmed: object = 0  # how often the time had been confirmed at the last check
        self._lock = threading.Lock()

    def check(self) -> str:
        """Return why nothing may be removed, or an empty string. Raises as `Database` does."""
        with self._lock, self._database.writing() as connection:
            self._database.lock_names(connection, _CLOCK_SETTING)
            now, monotonic = self._database.now(connection), self._monotonic()
            stored = _load_setting(connection)
            confirmed = stored.get("confirmed", 0)
            if confirmed != self._confirmed:
                self._last = None  # a jump since the last check of this process is what was confirmed
            reason = str(stored.get("jumped") or "") or self._jump(now, monotonic, stored.get("checked"))
            self._last, self._confirmed = (now, monotonic), confirmed
            if reason:
                _save_setting(connection, {**stored, "jumped": reason})
            else:
                _save_setting(connection, {"checked": now, "confirmed": confirmed})
            return reason

    def _jump(self, now: float, monotonic: float, checked: object) -> str:
        if self._last is not None:
            drift = (now - self._last[0]) - (monotonic - self._last[1])
            if abs(drift) > _TOLERANCE_SECONDS:
                return f"the clock jumped by {drift:+.0f} s while the service ran"
        if isinstance(checked, int | float):
            if checked > now + _TOLERANCE_SECONDS:
                return f"the last check lies {checked - now:.0f} s in the future"
            if now - checked > _MAX_GAP_SECONDS:
                return f"the last check was {(now - checked) / _DAY:.0f} days ago"
        return ""

    def reason(self) -> str:
        """Return why nothing is removed, or an empty string. Raises as `Database` does."""
        with self._database.reading() as connection:
            return str(_load_setting(connection).get("jumped") or "")

    def confirm(self) -> None:
        """Note that an operator has seen that the time is right. Raises as `Database` does."""
        with self._database.writing() as connection:
            self._database.lock_names(connection, _CLOCK_SETTING)
            confirmed = _load_setting(connection).get("confirmed")
            count = confirmed + 1 if isinstance(confirmed, int) else 1
            _save_setting(connection, {"checked": self._database.now(connection), "confirmed": count})


def _load_setting(connection: Connection) -> Mapping[str, Any]:
    found = connection.execute(select(SETTINGS.c.value).where(SETTINGS.c.name == _CLOCK_SETTING)).scalar_one_or_none()
    return found if isinstance(found, Mapping) else {}


def _save_setting(connection: Connection, value: Mapping[str, Any]) -> None:
    connection.execute(delete(SETTINGS).where(SETTINGS.c.name == _CLOCK_SETTING))
    connection.execute(insert(SETTINGS).values(name=_CLOCK_SETTING, value=dict(value)))
