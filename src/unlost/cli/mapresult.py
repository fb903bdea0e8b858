"""What commands that write maps have in common behind their work."""

from collections.abc import Sequence
from pathlib import Path

from unlost._core import MapShape
from unlost.cli.target import is_standard_output
from unlost.errors import UsageError
from unlost.formats.output import atomic_file


def reject_stdout_conflict(output: Path, json: bool) -> None:
    """Raise UsageError, before any work, if the map and the result would be written to the same place."""
    if json and is_standard_output(output):
        raise UsageError("--json and -o - would both be written to standard output: give the map a name")


def write_trace(trace: Path | None, shape: MapShape) -> None:
    """Write lines read against lines left, if that is wanted."""
    if trace is not None:
        with atomic_file(trace) as curve:
            rows = [("lines_in", "lines_out"), *shape.trace]
            curve.write("".join(f"{a},{b}\n" for a, b in rows).encode())


def rollups_by_level(rollups: Sequence[int], host_levels: int) -> dict[str, int]:
    """Return how many nodes were rolled up at which depth, as the papers name them: H2, P0 and so on."""
    names = [f"H{level + 1}" if level < host_levels else f"P{level - host_levels}" for level in range(len(rollups))]
    return {name: count for name, count in zip(names, rollups, strict=True) if count}


def format_compaction(shape: MapShape) -> str:
    """Return what compacting did, for people."""
    rolled = ", ".join(f"{name} {count}" for name, count in rollups_by_level(shape.rollups, shape.host_levels).items())
    return f"{shape.lines_in} lines became {shape.lines_out}; rolled up by depth: {rolled or 'none'}"


def repaired_keys_note(count: int) -> str:
    """Return the end of a message that says how many key columns were repaired; nothing if none was."""
    return f", {count} keys repaired by their URLs" if count else ""
