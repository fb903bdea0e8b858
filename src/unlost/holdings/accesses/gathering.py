"""Counts what logs tell of requests, in one pass and bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, get_args

from unlost import _core
from unlost.formats.accesslog import read_access_log
from unlost.formats.memgatorlog import is_memgator_log, read_memgator_log
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines
from unlost.formats.unread import require_rereadable
from unlost.formats.upstream import read_upstream_log

LogKind = Literal["access", "upstream", "memgator"]
LOG_KINDS: tuple[LogKind, ...] = get_args(LogKind)
"""Common or combined format of an archive's server; our own log of upstream answers; MemGator's."""

MAX_TRACKED_PAGES = 1 << 16
"""Pages that are remembered to find the most wanted ones: see `Accesses.missing_error`."""

_MAX_ARCHIVES = 10_000  # that are told apart: nobody asks more, and a log may be hostile
_MAX_NAME_LENGTH = 200  # of an archive
_MAX_URL_LENGTH = 2_000  # letters of an address that are remembered: a hostile log has none that end
_DETECTION_LINES = 100
_NOT_FOUND = (404, 410)


@dataclass(slots=True)
class ArchiveOutcomes:
    """What an archive answered: hits, misses and errors; and how often it was left alone after errors."""

    hits: int = 0
    misses: int = 0
    errors: int = 0
    sleeps: int = 0

    @property
    def requests(self) -> int:
        """All that it was asked."""
        return self.hits + self.misses + self.errors


@dataclass(slots=True)
class AccessStats:
    """What logs tell.

    archives: by name. asked: requests for pages, whether or not it is known who answered. kept: answers that came out
    of a cache, which are counted nowhere else. missing: finds the pages that were wanted most and not there.
    pages: how many different ones were asked for.
    """

    archives: dict[str, ArchiveOutcomes] = field(default_factory=dict)
    request_count: int = 0
    cached_count: int = 0
    missing: "_core.FrequentTexts" = field(default_factory=lambda: _core.FrequentTexts(MAX_TRACKED_PAGES))
    pages: "_core.DistinctTexts" = field(default_factory=_core.DistinctTexts)

    @property
    def total(self) -> ArchiveOutcomes:
        """All archives together."""
        each = list(self.archives.values())
        return ArchiveOutcomes(
            sum(a.hits for a in each), sum(a.misses for a in each), sum(a.errors for a in each),
            sum(a.sleeps for a in each),
        )  # fmt: skip

    @property
    def missing_error(self) -> int:
        """By how much numbers of missing pages may be too low; a page that was missed no oftener may be left out."""
        return self.missing.error

    def for_archive(self, archive: str) -> ArchiveOutcomes:
        """Return the numbers of an archive."""
        archive = archive[:_MAX_NAME_LENGTH]
        if archive not in self.archives and len(self.archives) >= _MAX_ARCHIVES:
            archive = "…"
        return self.archives.setdefault(archive, ArchiveOutcomes())


def detect_log_kind(path: str | PathLike[str]) -> LogKind:
    """Tell what a log is by its first lines. Raises InputError if it cannot be read, or only once."""
    require_rereadable(path)
    for line in islice(read_lines(path, Problems()), _DETECTION_LINES):
        text = line.text.strip()
        if is_memgator_log(text):
            return "memgator"
        if text.startswith(b"{"):
            return "upstream"
        if text:
            return "access"
    return "access"


def collect_access_stats(
    logs: Sequence[str | PathLike[str]],
    problems: Problems,
    *,
    kind: LogKind | None = None,
    on_request: Callable[[str], object] | None = None,
    wrap_urls: Callable[[Iterator[str]], Iterable[str]] = iter,
) -> AccessStats:
    """Return what logs tell. see: called with the address of every page that was asked for.

    passing: what the addresses of each log pass through, so that somebody can count them.

    What cannot be read is counted in `problems`. Raises InputError for a log that cannot be read at all.
    """
    accesses = AccessStats()
    for log in logs:
        for uri in wrap_urls(_read_log(log, kind or detect_log_kind(log), accesses, problems)):
            accesses.request_count += 1
            accesses.pages.see(uri)
            if on_request is not None:
                on_request(uri)
    return accesses


def _read_log(log: str | PathLike[str], kind: LogKind, accesses: AccessStats, problems: Problems) -> Iterator[str]:
    """Count the answers of a log, and yield the pages that were asked for."""
    name = fspath(log)
    if kind == "memgator":
        for event in read_memgator_log(name, problems):
            if event.event == "asked":
                yield event.name
            else:
                _count_outcome(accesses.for_archive(event.name), event.event)
    elif kind == "upstream":
        for answer in read_upstream_log(name, problems):
            if answer.from_cache:
                accesses.cached_count += 1
                continue
            outcome = answer.outcome if answer.outcome in ("hit", "miss") else "error"
            _count_outcome(accesses.for_archive(answer.archive), outcome)
            if outcome == "miss":
                accesses.missing.see(answer.uri[:_MAX_URL_LENGTH])
            yield answer.uri
    else:
        for hit in read_access_log(name, problems, is_archive=True):
            is_miss = hit.status in _NOT_FOUND
            is_hit = hit.status is not None and 200 <= hit.status < 400
            _count_outcome(accesses.for_archive(Path(name).name), "hit" if is_hit else "miss" if is_miss else "error")
            if is_miss:
                accesses.missing.see(hit.uri[:_MAX_URL_LENGTH])
            yield hit.uri


def _count_outcome(answers: ArchiveOutcomes, outcome: str) -> None:
    match outcome:
        case "hit":
            answers.hits += 1
        case "miss":
            answers.misses += 1
        case "sleep":
            answers.sleeps += 1
        case _:
            answers.errors += 1
