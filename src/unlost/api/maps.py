"""Builds and compacts MementoMaps, for Python programs."""

from collections.abc import Collection, Sequence
from os import PathLike

from unlost.errors import UsageError
from unlost.mementomap.builder import MapOptions
from unlost.mementomap.builder import build_map as build
from unlost.mementomap.compact import NO_LIMIT, Compaction
from unlost.mementomap.compact import compact_map as compact
from unlost.mementomap.map_file import build_time
from unlost.mementomap.readers import InputReport, ProgressCallback


def build_map(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    *,
    host_weight: float | None = None,
    path_weight: float | None = None,
    status: Collection[str | int] = (),
    mime: Collection[str] = (),
    name: str | None = None,
    allow_partial: bool = False,
    max_bad: float | None = None,
    on_progress: ProgressCallback | None = None,
) -> InputReport:
    r"""Build the MementoMap of what indexes list.

    Invalid lines are counted in `problems` of the report. If an error is raised, nothing is written.

    Args:
        inputs: One or several CDX, CDXJ, ZipNum, WARC, ARC or WACZ files, URL lists, logs or maps, of any size and in
            any order.
        output: The map file. It appears when it is complete.
        host_weight: Weight for compacting hosts; None for no compaction. docs/map.md explains the weights.
        path_weight: Weight for compacting paths; None for no compaction.
        status: Use only captures with one of these statuses.
        mime: Use only captures with one of these media types.
        name: Name of the archive in the header. The header also has the build time: SOURCE_DATE_EPOCH, or now.
        allow_partial: Use the readable part of damaged inputs, and skip those that cannot be read.
        max_bad: Maximum share of invalid lines, from 0 to 1; None for no limit.
        on_progress: Receives the progress from time to time.

    Returns:
        A report on the input lines.

    Raises:
        InputError: An input cannot be read, is damaged or empty, or has no valid line.
        OSError: The output cannot be written.

    >>> import tempfile, unlost
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index, file = Path(folder, "urls.txt"), Path(folder, "map.ukvs")
    ...     _ = index.write_text("http://a.example/x\nhttp://a.example/y\n")
    ...     print(unlost.build_map(index, file).counted, unlost.Map.open(file).lookup("http://a.example/x").held)
    2 True
    """
    if isinstance(status, str) or isinstance(mime, str):
        raise UsageError("status, mime: expected lists, such as [200] and ['text/html'], found a text")
    files = [inputs] if isinstance(inputs, str | PathLike) else list(inputs)
    options = MapOptions(
        host_weight=host_weight, path_weight=path_weight, status=frozenset(map(str, status)), mime=frozenset(mime),
        name=name, built_at=build_time(), allow_partial=allow_partial, max_bad=max_bad,
    )  # fmt: skip
    return build(files, output, options, on_progress)


def compact_map(
    source: str | PathLike[str],
    output: str | PathLike[str],
    *,
    host_weight: float | None = 1.0,
    path_weight: float | None = 1.0,
    on_progress: ProgressCallback | None = None,
) -> InputReport:
    """Write a smaller map that covers every page that the given one covers.

    Args:
        source: The map.
        output: The compacted map. It appears when it is complete.
        host_weight: Weight for hosts; smaller values yield a smaller map. None disables the roll-up of hosts.
        path_weight: Weight for paths, likewise.
        on_progress: Receives the progress from time to time.

    Returns:
        A report on the lines.

    Raises:
        InputError: The source is not a sorted map.
        UsageError: A weight is negative.
        OSError: The output cannot be written.
    """
    host, path = (NO_LIMIT if each is None else each for each in (host_weight, path_weight))
    return compact(source, output, Compaction(host, path), on_progress)
