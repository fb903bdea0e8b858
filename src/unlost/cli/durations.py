"""Spans of time on the command line: `1d`, `12h`, `30m`, `90s`."""

import re

import click

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d{1,6})([smhdw]?)", re.ASCII)


class Duration(click.ParamType[float]):
    """A span of time. least, most: in seconds."""

    name = "span"

    def __init__(self, least: float, most: float) -> None:
        self._least = least
        self._most = most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a text; a number alone is days."""
        if isinstance(value, float):
            return value
        found = _SPAN.fullmatch(str(value).strip().lower())
        if found is None:
            self.fail("expected a number with s, m, h, d or w behind it, such as 12h", param, ctx)
        seconds = float(int(found[1]) * _SECONDS[found[2] or "d"])
        if not self._least <= seconds <= self._most:
            self.fail(f"expected {_shown(self._least)} to {_shown(self._most)}", param, ctx)
        return seconds


def _shown(seconds: float) -> str:
    unit = next(unit for unit in ("w", "d", "h", "m", "s") if seconds % _SECONDS[unit] == 0)
    return f"{seconds / _SECONDS[unit]:.0f}{unit}"
