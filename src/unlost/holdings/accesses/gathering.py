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
from unlost.formats.unread import refuse_pipe
from unlost.formats.upstream import read_answers

LogKind = Literal["access", "upstream", "memgator"]
LOG_KINDS: tuple[LogKind, ...] = get_args(LogKind)
"""Common or combined format of an archive's server; our own log of upstream answers; MemGator's."""

REMEMBERED = 1 << 16
"""Pages that are remembered to find the most wanted ones: see `Accesses.missing_error`."""

_MOST_ARCHIVES = 10_000  # that are told apart: nobody asks more, and a log may be hostile
_LONGEST_NAME = 200  # of an archive
_LONGEST_PAGE = 2_000  # letters of an address that are remembered: a hostile log has none that end
_LOOKED_AT = 100
_NOT_FOUND = (404, 410)


@dataclass(slots=True)
class Answers:
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
class Accesses:
    """What logs tell.

    archives: by name. asked: requests for pages, whether or not it is known who answered. kept: answers that came out
    of a cache, which are counted nowhere else. missing: finds the pages that were wanted most and not there.
    pages: how many different ones were asked for.
    """

    archives: dict[str, Answers] = field(default_factory=dict)
    asked: int = 0
    kept: int = 0
    missing: "_core.FrequentTexts" = field(default_factory=lambda: _core.FrequentTexts(REMEMBERED))
    pages: "_core.DistinctTexts" = field(default_factory=_core.DistinctTexts)

    @property
    def total(self) -> Answers:
        """All archives together."""
        each = list(self.archives.values())
        return Answers(
            sum(a.hits for a in each), sum(a.misses for a in each), sum(a.errors for a in each),
            sum(a.sleeps for a in each),
        )  # fmt: skip

    @property
    def missing_error(self) -> int:
        """By how much numbers of missing pages may be too low; a page that was missed no oftener may be left out."""
        return self.missing.error

    def of(self, archive: str) -> Answers:
        """Return the numbers of an archive."""
        archive = archive[:_LONGEST_NAME]
        if archive not in self.archives and len(self.archives) >= _MOST_ARCHIVES:
            archive = "…"
        return self.archives.setdefault(archive, Answers())


def log_kind(path: str | PathLike[str]) -> LogKind:
    """Tell what a log is by its first lines. Raises InputError if it cannot be read, or only once."""
    refuse_pipe(path)
    for line in islice(read_lines(path, Problems()), _LOOKED_AT):
        text = line.text.strip()
        if is_memgator_log(text):
            return "memgator"
        if text.startswith(b"{"):
            return "upstream"
        if text:
            return "access"
    return "access"


def gather_accesses(
    logs: Sequence[str | PathLike[str]],
    problems: Problems,
    *,
    kind: LogKind | None = None,
    see: Callable[[str], object] | None = None,
    passing: Callable[[Iterator[str]], Iterable[str]] = iter,
) -> Accesses:
    """Return what logs tell. see: called with the address of every page that was asked for.

    passing: what the addresses of each log pass through, so that somebody can count them.

    What cannot be read is counted in `problems`. Raises InputError for a log that cannot be read at all.
    """
    accesses = Accesses()
    for log in logs:
        for uri in passing(_read(log, kind or log_kind(log), accesses, problems)):
            accesses.asked += 1
            accesses.pages.see(uri)
            if see is not None:
                see(uri)
    return accesses


def _read(log: str | PathLike[str], kind: LogKind, accesses: Accesses, problems: Problems) -> Iterator[str]:
    """Count the answers of a log, and yield the pages that were asked for."""
    name = fspath(log)
    if kind == "memgator":
        for event in read_memgator_log(name, problems):
            if event.event == "asked":
                yield event.name
            else:
                _count(accesses.of(event.name), event.event)
    elif kind == "upstream":
        for answer in read_answers(name, problems):
            if answer.from_cache:
                accesses.kept += 1
                continue
            outcome = answer.outcome if answer.outcome in ("hit", "miss") else "error"
            _count(accesses.of(answer.archive), outcome)
            if outcome == "miss":
                accesses.missing.see(answer.uri[:_LONGEST_PAGE])
            yield answer.uri
    else:
        for hit in read_access_log(name, problems, archive=True):
            is_miss = hit.status in _NOT_FOUND
            is_hit = hit.status is not None and 200 <= hit.status < 400
            _count(accesses.of(Path(name).name), "hit" if is_hit else "miss" if is_miss else "error")
            if is_miss:
                accesses.missing.see(hit.uri[:_LONGEST_PAGE])
            yield hit.uri


def _count(answers: Answers, outcome: str) -> None:
    match outcome:
        case "hit":
            answers.hits += 1
        case "miss":
            answers.misses += 1
        case "sleep":
            answers.sleeps += 1
        case _:
            answers.errors += 1
