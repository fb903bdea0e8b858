"""Crawler traps: endless URL spaces, such as calendars, session ids and repeating paths.

Recoveries use this module, too, for links found in captures.
"""

import re

_MAX_DATED_CHARS = 2_000  # characters of a name in which dates are searched for
_MAX_YEARS_AHEAD = 2
"""Years ahead for which events are plausibly announced. There is no limit into the past: newspaper archives have pages
for days centuries ago, and a calendar that goes back forever is stopped by `TrapDetector`.
"""
_DATE_IN_PATH = re.compile(
    r"(?:^|[/=_-])(\d{4})(?:[/_-](?:0?[1-9]|1[0-2])(?:[/?&_-]|$)|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[/?&]|$))"
)
_YEAR_IN_QUERY = re.compile(r"[?&;](?:\w{0,20}(?:year|jahr|annee|ano|yr)|y|yyyy)=(\d{4})(?:[&;]|$)", re.IGNORECASE)

MAX_URL_CHARS = 2_000
"""Characters of a URL. Internet Explorer opened no URL of more than 2,083, so real pages have shorter ones."""
MAX_PATH_SEGMENTS = 20
"""Path segments. The dissertation's crawls of 300 sites stopped at 15; real sites have fewer than 20."""
MAX_SIMILAR_NAMES = 10_000
"""Unlisted names of one shape: as many as the largest site had that the dissertation recovered completely, and less
than half an hour of requests to an archive at eight per second.
"""
MAX_NAMES_IN_FOLDER = 50_000
"""Unlisted names in one folder shape, whatever their own shapes: stops traps that generate words."""
MAX_SHAPES = 200_000
"""Distinct shapes of names and folders, about 25 MB. Only traps have more."""
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9A-Fa-f]{8,}")
_DIGITS = re.compile(r"\d+")
_VALUE = re.compile(r"=[^&]*")


def is_endless_calendar(name: str, this_year: int) -> bool:
    """Return whether a page name has a date so far in the future that a calendar must have generated it.

    >>> names = [f"example.com/{tail}" for tail in ("cal/2041/07", "news/1850/07", "?year=2041", "item/2099")]
    >>> [is_endless_calendar(name, 2026) for name in names]
    [True, False, True, False]
    """
    text = name[:_MAX_DATED_CHARS]
    years = [int(match[1]) for pattern in (_DATE_IN_PATH, _YEAR_IN_QUERY) for match in pattern.finditer(text)]
    return any(year > this_year + _MAX_YEARS_AHEAD for year in years)


class TrapDetector:
    """Detects traps among page names that are known from links only, by counting names of the same shape.

    Call `check` once per name. The counts are not stored; to resume, check the same names again in any order. Memory is
    bounded by `max_shapes`.

    Args:
        max_similar: Names of one shape that are accepted.
        max_in_folder: Names in one folder shape that are accepted.
        max_shapes: Distinct shapes that are accepted.
    """

    def __init__(
        self,
        max_similar: int = MAX_SIMILAR_NAMES,
        max_in_folder: int = MAX_NAMES_IN_FOLDER,
        max_shapes: int = MAX_SHAPES,
    ) -> None:
        self._max_similar = max_similar
        self._max_in_folder = max_in_folder
        self._max_shapes = max_shapes
        # Keyed by hash to save memory. Python salts hashes of strings, so collisions cannot be provoked.
        self._counts: dict[int, int] = {}

    def check(self, name: str) -> str | None:
        """Return why a name is part of a trap, as text for users; otherwise count it and return None.

        >>> TrapDetector().check("example.com/a/b/a/b/a/b/c"), TrapDetector().check("example.com/a/b")
        ('path repeats itself', None)
        """
        if (reason := endless_path_reason(name)) is not None:
            return reason
        path, _, query = name.partition("?")
        path_shape = url_shape(path)
        page_shape = f"{path_shape}?{_DIGITS.sub('0', _VALUE.sub('=', query))}"
        # Shapes of pages contain a question mark, those of folders do not, so they cannot be equal.
        folder_shape = path_shape.rpartition("/")[0]
        return self._count(
            (hash(page_shape), self._max_similar, "of the same shape"),
            (hash(folder_shape), self._max_in_folder, "in one folder"),
        )

    def _count(self, *kinds: tuple[int, int, str]) -> str | None:
        for key, most, what in kinds:
            if self._counts.get(key, 0) >= most:
                return f"more than {most:,} unlisted URLs {what}"
        if len(self._counts) + sum(key not in self._counts for key, _, _ in kinds) > self._max_shapes:
            return f"more than {self._max_shapes:,} shapes of unlisted URLs"
        for key, _, _ in kinds:
            self._counts[key] = self._counts.get(key, 0) + 1
        return None


def endless_path_reason(name: str) -> str | None:
    """Return why a name alone shows that it is part of a trap, as text for users; None if it does not.

    >>> endless_path_reason("example.com/a/b/a/b/a/b/c"), endless_path_reason("example.com/a/b")
    ('path repeats itself', None)
    """
    if len(name) > MAX_URL_CHARS:
        return f"longer than {MAX_URL_CHARS:,} characters"
    segments = name.partition("?")[0].split("/")[1:]
    if len(segments) > MAX_PATH_SEGMENTS:
        return f"more than {MAX_PATH_SEGMENTS} folders deep"
    return "path repeats itself" if _has_repeated_segments(segments) else None


def url_shape(path: str) -> str:
    """Return a path with numbers and random identifiers replaced by placeholders.

    >>> url_shape("example.com/2014/05/page12.html"), url_shape("example.com/s/3f2504e04f8911d39a0c0305e82c3301")
    ('example.com/0/0/page0.html', 'example.com/s/x')
    """
    if _HEX.search(path):  # matches every UUID, too
        path = _HEX.sub(_mask_hex, _UUID.sub("x", path))
    return _DIGITS.sub("0", path)


def _mask_hex(match: re.Match[str]) -> str:
    """Return `x` for hexadecimal digits with both digits and letters; dates and words are returned unchanged."""
    run = match[0]
    return run if run.isdigit() or run.isalpha() else "x"


def _has_repeated_segments(segments: list[str]) -> bool:
    """Return whether a sequence of segments occurs three times in a row, unless it consists of numbers, as in dates.

    Twice is frequent (`/news/news/`); three times indicates a link relative to the wrong folder.
    """
    if len(segments) - len(set(segments)) < 2:
        return False
    for size in range(1, len(segments) // 3 + 1):
        for start in range(len(segments) - 3 * size + 1):
            first, second, third = (segments[start + i * size : start + (i + 1) * size] for i in range(3))
            if first == second == third and not all(segment.isdecimal() for segment in first):
                return True
    return False
