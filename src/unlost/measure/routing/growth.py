"""How profiles and maps grow with an archive: keys, bytes and seconds of each part, and of all up to each."""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path

from unlost.formats.problems import Problems
from unlost.holdings.budget import compressed_size
from unlost.holdings.build import MapOptions, build_map
from unlost.holdings.compaction import Compaction
from unlost.holdings.profile import ProfileHeader, build_profiles
from unlost.measure.routing.configurations import RoutingConfiguration
from unlost.measure.routing.slices import IndexSlice, slice_index
from unlost.measure.routing.trying import count_rows


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

    >>> [round(part, 3) for part in fit_power([(10, 2 * 10**0.9), (1000, 2 * 1000**0.9)]) or ()]
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
