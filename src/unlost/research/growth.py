"""Growth of profiles and maps with an archive: splits an index by capture date and builds each slice.

Configurations are built and timed one by one. Building several profiles in one pass would cost less, but would not show
the cost of each.
"""

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
from unlost.statistics import fit_power_curve
from unlost.text_lines import read_lines

MAX_SLICES = 200
"""Maximum number of slices, whose files are all open at the same time."""
_DAY_DIGITS = 8  # YYYYMMDD


@dataclass(frozen=True, slots=True)
class IndexSlice:
    """A slice of an index.

    Attributes:
        name: A year, or the first and last day.
        path: CDX file with its rows.
        rows: Number of rows.
    """

    name: str
    path: Path
    rows: int


def slice_index(
    files: Sequence[str | PathLike[str]], folder: Path, problems: Problems, *, parts: int | None = None
) -> list[IndexSlice]:
    """Split index files by capture date into slices, oldest first.

    Rows of one day stay together. Rows without a date are added to `problems` as `bad-date` and dropped.

    Args:
        files: CDX or CDXJ files.
        folder: Folder for the slices.
        problems: Collects the rows without a date.
        parts: Number of slices of about equal size; None for one slice per year.

    Raises:
        InputError: A file is not CDX or CDXJ, or no row has a date.
        UsageError: More than `MAX_SLICES` slices.
    """
    if parts is not None and not 1 <= parts <= MAX_SLICES:
        raise UsageError(f"{parts} slices: expected 1 to {MAX_SLICES}")
    refuse_pipes(files)  # each file is read twice
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
                # A CDX header applies to the rows that follow it, in every slice.
                for output in outputs.values():
                    output.write(text + b"\n")
            elif day:
                outputs[names[day]].write(text + b"\n")
                rows[names[day]] += 1
    return [IndexSlice(name, folder / f"{name}.cdx", rows[name]) for name in outputs]


def _slice_by_year(days: Counter[bytes]) -> dict[bytes, str]:
    return {day: day[:4].decode() for day in days}


def _slice_evenly(days: Counter[bytes], parts: int) -> dict[bytes, str]:
    """Return the name of the slice of each day: the slice that contains the median of the day's rows."""
    order = sorted(days)
    ends = list(accumulate(days[day] for day in order))
    slices = [
        min(parts - 1, (2 * end - days[day]) * parts // (2 * ends[-1])) for day, end in zip(order, ends, strict=True)
    ]
    first: dict[int, str] = {}
    last: dict[int, str] = {}
    for day, number in zip(order, slices, strict=True):
        first.setdefault(number, day.decode())
        last[number] = day.decode()
    return {day: f"{first[number]}-{last[number]}" for day, number in zip(order, slices, strict=True)}


def _dated_rows(files: Sequence[str | PathLike[str]], problems: Problems) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield each row with its day: empty if it has no date, None for a CDX header."""
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
    columns = text[4:].split()
    return columns.index(b"b") if b"b" in columns else 1


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """Size of one configuration, built from one slice or from all slices up to it.

    Attributes:
        cumulative: Whether it was built from all slices up to this one.
        mementos: Captures (URI-Ms).
        addresses: Different URLs (URI-Rs).
        compressed: Size in bytes, compressed.
        seconds: Build time; the only value that is not reproducible.
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
        """Lines per URI-R (relative cost)."""
        return self.lines / self.addresses if self.addresses else 0.0

    def to_row(self) -> dict[str, object]:
        """Return the row for JSON and CSV."""
        return asdict(self) | {"relative_cost": self.cost}


@dataclass(slots=True)
class IndexGrowth:
    """All points, and the problems found in the index."""

    points: list[GrowthPoint] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)

    def fit_heaps_law(self) -> tuple[float, float] | None:
        """Fit Heaps' law, URI-Rs = K·mementos^β, to the cumulative slices.

        Returns:
            K and β; None for fewer than two points.
        """
        pairs = {(each.mementos, each.addresses) for each in self.points if each.cumulative and each.addresses}
        curve = fit_power_curve(sorted(pairs))
        return None if curve is None else (curve.a, curve.b)

    def linearity(self, configuration: str) -> float | None:
        """Return R² of a linear fit of the lines of a configuration by URI-Rs, over the cumulative slices."""
        points = [each for each in self.points if each.cumulative and each.configuration == configuration]
        return r_squared([(each.addresses, each.lines) for each in points])


def measure_growth(
    index: Sequence[str | PathLike[str]], configurations: Sequence[RoutingConfiguration], *, parts: int | None = None
) -> IndexGrowth:
    """Split an index by date and build each configuration from each slice and from all slices up to it.

    Configurations with a budget, and filters, are skipped, because their size is fixed. Needs temporary disk space for
    the uncompressed index.

    Args:
        index: CDX or CDXJ files.
        configurations: Configurations to build.
        parts: Number of slices; None for one per year.

    Raises:
        InputError: The index cannot be split by date.
    """
    growth = IndexGrowth()
    ranked = [each for each in configurations if each.is_ranked and not each.min_probability]
    with tempfile.TemporaryDirectory(prefix="unlost-growth-") as name:
        folder = Path(name)
        index_slices = slice_index(index, folder, growth.problems, parts=parts)
        for position, index_slice in enumerate(index_slices):
            sets: list[tuple[bool, list[IndexSlice]]] = [(False, [index_slice]), (True, index_slices[: position + 1])]
            for cumulative, slices in sets:
                files = [each.path for each in slices]
                addresses, mementos = _count_urls(files, folder / "made")
                for configuration in ranked:
                    output = folder / "made"
                    start = time.perf_counter()
                    lines = _build_configuration(configuration, files, output)
                    seconds = time.perf_counter() - start
                    growth.points.append(
                        GrowthPoint(
                            index_slice.name,
                            cumulative,
                            configuration.name,
                            mementos,
                            addresses,
                            lines if lines is not None else count_rows(output),
                            output.stat().st_size,
                            compressed_size(output),
                            round(seconds, 6),
                        )
                    )
    return growth


def _count_urls(files: Sequence[Path], output: Path) -> tuple[int, int]:
    """Return the number of URI-Rs and of captures."""
    captures = build_profiles(files, {"URIR": output}, ProfileHeader("URIR"), Problems())
    return count_rows(output), captures


def _build_configuration(configuration: RoutingConfiguration, files: Sequence[Path], output: Path) -> int | None:
    """Build a profile or a map; return its number of lines if known without reading the file."""
    if configuration.policy is not None:
        build_profiles(files, {configuration.policy: output}, ProfileHeader(configuration.policy), Problems())
        return None
    is_complete = all(map(math.isinf, configuration.weights))
    report = build_map(
        files, output, MapOptions(compaction=None if is_complete else Compaction(*configuration.weights))
    )
    return report.shape.lines_out if report.shape is not None else None


def r_squared(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the coefficient of determination of a linear fit; None if there is no fit or y is constant.

    >>> r_squared([(0, 1), (1, 3), (2, 5)]), r_squared([(1, 1)])
    (1.0, None)
    """
    line = _fit_line(pairs)
    if line is None:
        return None
    mean = sum(y for _, y in pairs) / len(pairs)
    total = sum((y - mean) ** 2 for _, y in pairs)
    residual = sum((y - line[0] - line[1] * x) ** 2 for x, y in pairs)
    return 1 - residual / total if total else None


def _fit_line(pairs: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return intercept and slope of the least squares line."""
    if len({x for x, _ in pairs}) < 2:
        return None
    mean_x, mean_y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / sum((x - mean_x) ** 2 for x, _ in pairs)
    return mean_y - slope * mean_x, slope
