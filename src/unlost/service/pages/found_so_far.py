"""What a recovery has found so far, in detail: from its last checkpoint, which nobody writes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from unlost.errors import InputError
from unlost.recover.report.figures import figures_of
from unlost.recover.report.kinds import ORDER
from unlost.recover.state.reading import StateReading
from unlost.service.jobs.folders import CHECKPOINT

_MOST = 200  # recoveries that are remembered


@dataclass(frozen=True, slots=True)
class FoundSoFar:
    """Numbers of files that came back: by kind, and by archive. first, last: dates of copies, 14 digits."""

    kinds: Mapping[str, int] = field(default_factory=dict)
    archives: Mapping[str, int] = field(default_factory=dict)
    first: str | None = None
    last: str | None = None


class Checkpoints:
    """Reads checkpoints, each once: many may watch the same recovery."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[int, FoundSoFar]] = {}
        self._lock = Lock()

    def read(self, folder: Path) -> FoundSoFar | None:
        """Return what the last checkpoint in a folder knows; None if there is none, or if it cannot be read."""
        file = folder / CHECKPOINT
        try:
            changed = file.stat().st_mtime_ns
            with self._lock:
                seen = self._seen.get(file)
            if seen is not None and seen[0] == changed:
                return seen[1]
            with StateReading(folder, CHECKPOINT) as state:
                figures = figures_of(state)
        except (InputError, OSError):  # it was replaced meanwhile, or removed
            return None
        kinds = {kind: figures.kinds[kind] for kind in ORDER if figures.kinds[kind]}
        found = FoundSoFar(kinds, dict(figures.archives.most_common()), figures.first, figures.last)
        with self._lock:
            while len(self._seen) >= _MOST:
                del self._seen[next(iter(self._seen))]
            self._seen[file] = changed, found
        return found
