"""Spans of time on the command line: `1d`, `12h`, `30m`, `90s`."""

import re

import click

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(\d{1,6})([smhdw]?)", re.ASCII)


class DurationType(click.ParamType[float]):
    """A span of time. least, most: in seconds."""

    name = "span"

    def __init__(self, minimum: float, maximum: float) -> None:
        self._minimum = minimum
        self._maximum = maximum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a text; a number alone is days."""
        if isinstance(value, float):
            return value
        found = _DURATION.fullmatch(str(value).strip().lower())
        if found is None:
            self.fail("expected a number with s, m, h, d or w behind it, such as 12h", param, ctx)
        seconds = float(int(found[1]) * _UNIT_SECONDS[found[2] or "d"])
        if not self._minimum <= seconds <= self._maximum:
            self.fail(f"expected {_format_duration(self._minimum)} to {_format_duration(self._maximum)}", param, ctx)
        return seconds


def _format_duration(seconds: float) -> str:
    unit = next(unit for unit in ("w", "d", "h", "m", "s") if seconds % _UNIT_SECONDS[unit] == 0)
    return f"{seconds / _UNIT_SECONDS[unit]:.0f}{unit}"
