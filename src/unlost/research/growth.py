"""Measures how profiles and maps grow with an archive: cuts an index by capture date and builds each slice."""

import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO

from unlost.errors import InputError, UsageError
from unlost.mementomap.budget import compressed_size
from unlost.mementomap.builder import MapOptions, build_map
from unlost.mementomap.compact import Compaction
from unlost.mementomap.profile_builder import ProfileHeader, build_profiles
from unlost.mementomap.readers import detect_input_kind, refuse_pipes
from unlost.problems import Problem, Problems
from unlost.research.routing_evaluation import count_rows
from unlost.research.routing_results import RoutingConfiguration
from unlost.text_lines import read_lines

MAX_SLICES = 200
"""Files are written to all of them at once."""
_DAY_DIGITS = 8  # digits


@dataclass(frozen=True, slots=True)
class IndexSlice:
    """A part of an index: its name (a year, or the days from and to), its file, and how many rows it has."""

    name: str
    path: Path
    rows: int


def slice_index(
    files: Sequence[str | PathLike[str]], folder: Path, problems: Problems, *, parts: int | None = None
) -> list[IndexSlice]:
    """Write the rows of index files to parts, the oldest first, and return those.

    parts: so many, of about as many rows each; without, one for each year. Rows of one day stay together. Rows without
    a date are counted among the problems, as `bad-date`, and left out. Raises InputError for what is no CDX or CDXJ, or
    has no dated row, UsageError for more parts than files can be written to.
    """
    if parts is not None and not 1 <= parts <= MAX_SLICES:
        raise UsageError(f"{parts} slices: expected 1 to {MAX_SLICES}")
    refuse_pipes(files)  # each is read twice
    days: Counter[bytes] = Counter(day for day, _ in _dated_rows(files, problems) if day)
    if not days:
        raise InputError(f"{fspath(files[0])}: no row with a date: expected a CDX or CDXJ")
    names = _slice_by_year(days) if parts is None else _slice_evenly(days, parts)
    rows: Counter[str] = Counter()
    with ExitStack() as stack:
        outputs: dict[str, BinaryIO] = {}
        for name in dict.fromkeys(names[day] for day in sorted(names)):
            outputs[name] = stack.enter_context((folder / f"{name}.cdx").open("wb"))
        if len(outputs) > MAX_SLICES:
            raise UsageError(f"{len(outputs)} years: expected at most {MAX_SLICES}: give --slices")
        for day, text in _dated_rows(files, Problems()):
            if day is None:
                # A line that says what the columns are holds for all rows behind it.
                for output in outputs.values():
                    output.write(text + b"\n")
            elif day:
                outputs[names[day]].write(text + b"\n")
                rows[names[day]] += 1
    return [IndexSlice(name, folder / f"{name}.cdx", rows[name]) for name in outputs]


def _slice_by_year(days: Counter[bytes]) -> dict[bytes, str]:
    return {day: day[:4].decode() for day in days}


def _slice_evenly(days: Counter[bytes], parts: int) -> dict[bytes, str]:
    """Return for each day the name of its part: that in which the middle of its rows falls."""
    order = sorted(days)
    ends = list(accumulate(days[day] for day in order))
    places = [
        min(parts - 1, (2 * end - days[day]) * parts // (2 * ends[-1])) for day, end in zip(order, ends, strict=True)
    ]
    first: dict[int, str] = {}
    last: dict[int, str] = {}
    for day, place in zip(order, places, strict=True):
        first.setdefault(place, day.decode())
        last[place] = day.decode()
    return {day: f"{first[place]}-{last[place]}" for day, place in zip(order, places, strict=True)}


def _dated_rows(files: Sequence[str | PathLike[str]], problems: Problems) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield the day of each row with its text; no day for one that has none, None for a line about columns."""
    for file in files:
        kind = detect_input_kind(file)
        if kind != "index":
            raise InputError(f"{fspath(file)}: cannot be cut by dates ({kind}): expected a CDX or CDXJ")
        column = 1
        for line in read_lines(file, problems):
            text = line.text
            if text[1:4] == b"CDX" and not text[:1].isalnum():
                column = _date_column(text)
                yield None, text
                continue
            if not text.strip() or text[:1] in b"!@#":
                continue
            cells = text.split(None, column + 1)
            day = cells[column][:_DAY_DIGITS] if len(cells) > column else b""
            if len(day) != _DAY_DIGITS or not day.isdigit():
                problems.add(Problem("bad-date", fspath(file), line.number, line.offset, "expected 14 digits"))
                day = b""
            yield day, text


def _date_column(text: bytes) -> int:
    letters = text[4:].split()
    return letters.index(b"b") if b"b" in letters else 1


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """One configuration, made of one part, or of all up to it.

    mementos: rows of captures (URI-Ms). addresses: different ones among them (URI-Rs). seconds: of making it from those
    rows, by itself; the only figure that two runs do not share.
    """

    slice: str
    cumulative: bool
    configuration: str
    mementos: int
    addresses: int
    lines: int
    bytes: int
    compressed: int
    seconds: float

    @property
    def cost(self) -> float:
        """Lines for each address."""
        return self.lines / self.addresses if self.addresses else 0.0

    def to_row(self) -> dict[str, object]:
        """Return it as JSON and CSV have it."""
        return asdict(self) | {"relative_cost": self.cost}


@dataclass(slots=True)
class IndexGrowth:
    """All points, and what could not be read."""

    points: list[GrowthPoint] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)

    def fit_heaps_law(self) -> tuple[float, float] | None:
        """Return K and β of Heaps' law for addresses by mementos, over the parts added up; None for fewer than two."""
        pairs = {(each.mementos, each.addresses) for each in self.points if each.cumulative and each.addresses}
        return fit_power_parameters(sorted(pairs))

    def linearity(self, configuration: str) -> float | None:
        """Return R² of a straight line through the lines of a configuration by addresses, over the parts added up."""
        found = [each for each in self.points if each.cumulative and each.configuration == configuration]
        return r_squared([(each.addresses, each.lines) for each in found])


def measure_growth(
    index: Sequence[str | PathLike[str]], configurations: Sequence[RoutingConfiguration], *, parts: int | None = None
) -> IndexGrowth:
    """Cut an index by its dates and make each configuration of each part, and of all parts up to it.

    parts: as `slice_index` has it. Budgets and filters are left out: their size is given. Needs as much room for
    temporary files as the index has uncompressed. Raises InputError for an index that cannot be cut.
    """
    growth = IndexGrowth()
    wanted = [one for one in configurations if one.is_ranked and not one.min_probability]
    with tempfile.TemporaryDirectory(prefix="unlost-growth-") as name:
        folder = Path(name)
        cut = slice_index(index, folder, growth.problems, parts=parts)
        for place, one in enumerate(cut):
            sets: list[tuple[bool, list[IndexSlice]]] = [(False, [one]), (True, cut[: place + 1])]
            for cumulative, slices in sets:
                files = [each.path for each in slices]
                addresses, mementos = _count_urls(files, folder / "made")
                for tried_one in wanted:
                    made = folder / "made"
                    start = time.perf_counter()
                    lines = _build_configuration(tried_one, files, made)
                    seconds = time.perf_counter() - start
                    growth.points.append(
                        GrowthPoint(
                            one.name,
                            cumulative,
                            tried_one.name,
                            mementos,
                            addresses,
                            lines if lines is not None else count_rows(made),
                            made.stat().st_size,
                            compressed_size(made),
                            round(seconds, 6),
                        )
                    )
    return growth


def _count_urls(files: Sequence[Path], made: Path) -> tuple[int, int]:
    """Return how many addresses and captures there are."""
    captures = build_profiles(files, {"URIR": made}, ProfileHeader("URIR"), Problems())
    return count_rows(made), captures


def _build_configuration(one: RoutingConfiguration, files: Sequence[Path], made: Path) -> int | None:
    """Make a profile or a map; return its lines if they are known without reading it."""
    if one.policy is not None:
        build_profiles(files, {one.policy: made}, ProfileHeader(one.policy), Problems())
        return None
    uncut = all(map(math.isinf, one.weights))
    report = build_map(files, made, MapOptions(compaction=None if uncut else Compaction(*one.weights)))
    return report.shape.lines_out if report.shape is not None else None


def fit_power_parameters(pairs: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return K and β of y = K · x^β by least squares of the logarithms; None for fewer than two places.

    >>> [round(part, 3) for part in fit_power_parameters([(10, 2 * 10**0.9), (1000, 2 * 1000**0.9)]) or ()]
    [2.0, 0.9]
    """
    logs = [(math.log(x), math.log(y)) for x, y in pairs if x > 0 and y > 0]
    line = _fit_line(logs)
    return None if line is None else (math.exp(line[0]), line[1])


def r_squared(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return how much of y a straight line by x explains; None if there is no line, or nothing to explain.

    >>> r_squared([(0, 1), (1, 3), (2, 5)]), r_squared([(1, 1)])
    (1.0, None)
    """
    line = _fit_line(pairs)
    if line is None:
        return None
    mean = sum(y for _, y in pairs) / len(pairs)
    total = sum((y - mean) ** 2 for _, y in pairs)
    left = sum((y - line[0] - line[1] * x) ** 2 for x, y in pairs)
    return 1 - left / total if total else None


def _fit_line(pairs: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return where the best straight line begins and how steep it is."""
    if len({x for x, _ in pairs}) < 2:
        return None
    across, up = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    steep = sum((x - across) * (y - up) for x, y in pairs) / sum((x - across) ** 2 for x, _ in pairs)
    return up - steep * across, steep
