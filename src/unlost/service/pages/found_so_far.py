"""What a recovery has found so far, in detail: from its last checkpoint, which nobody writes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from unlost.errors import InputError
from unlost.recover.report.figures import collect_stats
from unlost.recover.report.kinds import RESOURCE_KINDS
from unlost.recover.state.reading import StateReader
from unlost.service.jobs.folders import CHECKPOINT_FILE

_MAX_CACHED = 200  # recoveries that are remembered


@dataclass(frozen=True, slots=True)
class FoundSummary:
    """Numbers of files that came back: by kind, and by archive. first, last: dates of copies, 14 digits."""

    kinds: Mapping[str, int] = field(default_factory=dict)
    archives: Mapping[str, int] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None


class CheckpointReader:
    """Reads checkpoints, each once: many may watch the same recovery."""

    def __init__(self) -> None:
        self._cache: dict[Path, tuple[int, FoundSummary]] = {}
        self._lock = Lock()

    def read(self, folder: Path) -> FoundSummary | None:
        """Return what the last checkpoint in a folder knows; None if there is none, or if it cannot be read."""
        file = folder / CHECKPOINT_FILE
        try:
            changed = file.stat().st_mtime_ns
            with self._lock:
                seen = self._cache.get(file)
            if seen is not None and seen[0] == changed:
                return seen[1]
            with StateReader(folder, CHECKPOINT_FILE) as state:
                figures = collect_stats(state)
        except (InputError, OSError):  # it was replaced meanwhile, or removed
            return None
        kinds = {kind: figures.kinds[kind] for kind in RESOURCE_KINDS if figures.kinds[kind]}
        found = FoundSummary(kinds, dict(figures.archives.most_common()), figures.first, figures.last)
        with self._lock:
            while len(self._cache) >= _MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[file] = changed, found
        return found
