"""Crawler traps: URL spaces without end, such as calendars, sessions and paths that repeat."""

import re

_MAX_YEARS_AHEAD = 2
"""How many years ahead somebody may have announced something. Back in time there is no such bound: newspapers have
pages for days of centuries ago, and a calendar that goes back forever is stopped by the number of its pages."""
_DATE_IN_PATH = re.compile(
    r"(?:^|[/=_-])(\d{4})(?:[/_-](?:0?[1-9]|1[0-2])(?:[/?&_-]|$)|(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[/?&]|$))"
)
_YEAR_IN_QUERY = re.compile(r"[?&;](?:\w{0,20}(?:year|jahr|annee|ano|yr)|y|yyyy)=(\d{4})(?:[&;]|$)", re.IGNORECASE)


def is_endless_calendar(name: str, this_year: int) -> bool:
    """Return whether the name of a page has a date that is too far ahead, so that a calendar must have made it.

    >>> [is_endless_calendar(f"example.com/{tail}", 2026) for tail in ("cal/2041/07", "news/1850/07", "?year=2041", "item/2099")]
    [True, False, True, False]
    """
    years = [int(found[1]) for pattern in (_DATE_IN_PATH, _YEAR_IN_QUERY) for found in pattern.finditer(name[:2_000])]
    return any(year > this_year + _MAX_YEARS_AHEAD for year in years)


MAX_URL_CHARS = 2_000
"""Characters. Internet Explorer opened no address of more than 2,083, so pages have none; traps grow theirs."""
MAX_PATH_SEGMENTS = 20
"""Path segments. The dissertation's crawls of 300 sites stopped at 15; this is above what sites have by intention."""
MAX_SIMILAR_NAMES = 10_000
"""Unlisted names of one shape. That is as many as the largest site had that the dissertation recovered whole, and less
than half an hour of requests to an archive that takes eight a second."""
MAX_NAMES_IN_FOLDER = 50_000
"""Unlisted names in one folder shape, of however many shapes: the same for traps that make up words."""
MAX_SHAPES = 200_000
"""Shapes that are counted, of names and of folders: some 25 MB. Who has more makes them up."""
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9A-Fa-f]{8,}")
_DIGITS = re.compile(r"\d+")
_VALUE = re.compile(r"=[^&]*")


class TrapDetector:
    """Says of names that links lead to, and that no archive lists, whether they are part of a trap.

    It counts: ask once for each name. What it has counted is not kept anywhere; feed it the same names again, in
    whatever order, to go on where another left off. Memory is bounded by `shapes`.

    alike, in_folder, shapes: how many it lets through, as the constants above explain.
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
        # By hash, which is as good as the text here and much smaller; Python salts it, so nobody can aim at it.
        self._counts: dict[int, int] = {}

    def check(self, name: str) -> str | None:
        """Return why not to go there, in words for people; None if nothing speaks against it, and count it then.

        >>> TrapDetector().check("example.com/a/b/a/b/a/b/c"), TrapDetector().check("example.com/a/b")
        ('its path repeats itself', None)
        """
        if (reason := endless_path_reason(name)) is not None:
            return reason
        path, _, query = name.partition("?")
        place = url_shape(path)
        whole = f"{place}?{_DIGITS.sub('0', _VALUE.sub('=', query))}"
        # A folder is told from a page by having no question mark.
        folder = place.rpartition("/")[0]
        return self._count(
            (hash(whole), self._max_similar, "alike"), (hash(folder), self._max_in_folder, "in one folder")
        )

    def _count(self, *kinds: tuple[int, int, str]) -> str | None:
        for key, most, what in kinds:
            if self._counts.get(key, 0) >= most:
                return f"more than {most:,} unlisted addresses {what}"
        if len(self._counts) + sum(key not in self._counts for key, _, _ in kinds) > self._max_shapes:
            return f"more than {self._max_shapes:,} kinds of unlisted addresses"
        for key, _, _ in kinds:
            self._counts[key] = self._counts.get(key, 0) + 1
        return None


def endless_path_reason(name: str) -> str | None:
    """Return why a name by itself looks like one that a trap made; None if it does not.

    >>> endless_path_reason("example.com/a/b/a/b/a/b/c"), endless_path_reason("example.com/a/b")
    ('its path repeats itself', None)
    """
    if len(name) > MAX_URL_CHARS:
        return f"longer than {MAX_URL_CHARS:,} characters"
    segments = name.partition("?")[0].split("/")[1:]
    if len(segments) > MAX_PATH_SEGMENTS:
        return f"more than {MAX_PATH_SEGMENTS} folders deep"
    return "its path repeats itself" if _has_repeated_segments(segments) else None


def url_shape(path: str) -> str:
    """Return a path with what counters, calendars and random numbers change made equal.

    >>> url_shape("example.com/2014/05/page12.html"), url_shape("example.com/s/3f2504e04f8911d39a0c0305e82c3301")
    ('example.com/0/0/page0.html', 'example.com/s/x')
    """
    if _HEX.search(path):  # also in every UUID
        path = _HEX.sub(_mask_hex, _UUID.sub("x", path))
    return _DIGITS.sub("0", path)


def _mask_hex(found: re.Match[str]) -> str:
    """Return what stands for a run of hexadecimal digits: neither dates nor words are random."""
    run = found[0]
    return run if run.isdigit() or run.isalpha() else "x"


def _has_repeated_segments(segments: list[str]) -> bool:
    """Return whether some segments stand there three times in a row, unless they are numbers, as in dates.

    As crawlers count it: twice is frequent (`/news/news/`), three times is a link relative to the wrong folder.
    """
    if len(segments) - len(set(segments)) < 2:
        return False
    for size in range(1, len(segments) // 3 + 1):
        for start in range(len(segments) - 3 * size + 1):
            first, second, third = (segments[start + i * size : start + (i + 1) * size] for i in range(3))
            if first == second == third and not all(segment.isdecimal() for segment in first):
                return True
    return False
