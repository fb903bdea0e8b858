"""Maps of what archives hold: made and made smaller, for Python programs."""

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
    to: str | PathLike[str],
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
    r"""Write the map of what indexes hold; return what became of their lines.

    inputs: one or several files: CDX, CDXJ, ZipNum, WARC, ARC, WACZ, lists of addresses, logs, other maps; of any size,
        sorted or not. to: the map, which appears under its name once it is whole.
    host_weight, path_weight: compact it with these weights; None for no compaction. docs/map.md explains them.
    status, mime: only captures with one of these. name: of the archive, for the header, which also says when the map
    was made: SOURCE_DATE_EPOCH, or now.
    allow_partial: use what can be read of damaged inputs, and skip those that cannot be read.
    max_bad: at most this share of the lines may be bad, from 0 to 1; None for any share.
    on_progress: is told now and then how far it is.

    Lines that cannot be read are counted in `problems` of the report. Raises InputError if an input cannot be read, is
    damaged or empty, or has no good line, OSError for an output that cannot be written. Nothing is written then.

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
    return build(files, to, options, on_progress)


def compact_map(
    source: str | PathLike[str],
    to: str | PathLike[str],
    *,
    host_weight: float | None = 1.0,
    path_weight: float | None = 1.0,
    on_progress: ProgressCallback | None = None,
) -> InputReport:
    """Write a map with fewer lines that covers every page that the given one covers; return what became of its lines.

    host_weight, path_weight: smaller ones make a smaller map; None for no roll-up of hosts, or of paths.
    Raises InputError if the source is no sorted map, UsageError for weights below 0, OSError as `build_map` does.
    """
    host, path = (NO_LIMIT if each is None else each for each in (host_weight, path_weight))
    return compact(source, to, Compaction(host, path), on_progress)
