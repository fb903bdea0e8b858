"""What is archived against what is asked for, by powers of ten: the second paper's Figure 4."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from unlost.errors import UriError
from unlost.formats.problems import Problems
from unlost.formats.textfile import read_lines
from unlost.holdings.profile import ProfileHeader, build_profiles
from unlost.holdings.work import ProgressCallback
from unlost.uri import DEFAULT_RULES, key

MAGNITUDES = ("Zero", "Ones", "Tens", "Hundreds", "Thousands", "Ten thousands", "More")
"""Of mementos and of requests: none, 1 to 9, 10 to 99 and so on."""

_BATCH = 10_000

AccessMatrix = tuple[tuple[int, ...], ...]
"""URI-Rs by group of mementos (rows) and of requests (columns). The first of all is 0: nobody knows of these."""


def magnitude_of(number: int) -> int:
    """Return the place of a number in `GROUPS`.

    >>> [group_of(number) for number in (0, 1, 9, 10, 99, 100, 10**9)]
    [0, 1, 1, 2, 2, 3, 6]
    """
    return min(len(str(number)), len(MAGNITUDES) - 1) if number else 0


class RequestCounter:
    """How often each URI-R was asked for, on disk: as many as there are."""

    def __init__(self, file: Path, rules: str = DEFAULT_RULES) -> None:
        self._rules = rules
        self._batch: list[tuple[str]] = []
        # Nobody but this process needs it, and not after a crash.
        self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._database.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE asked (key TEXT PRIMARY KEY, times INTEGER, held INTEGER DEFAULT 0) WITHOUT ROWID;"
        )

    def add(self, uri: str) -> None:
        """Count a request. What has no key is left out."""
        try:
            self._batch.append((key(uri, self._rules),))
        except UriError:
            return
        if len(self._batch) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO asked (key, times) VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1", self._batch
        )
        self._database.execute("COMMIT")
        self._batch.clear()

    def cross_tabulate(self, held: Iterator[tuple[str, int]]) -> AccessMatrix:
        """Return the matrix of these requests and of URI-Rs with their mementos, each URI-R once."""
        self._flush()
        rows = [[0] * len(MAGNITUDES) for _ in MAGNITUDES]
        self._database.execute("BEGIN")
        for name, mementos in held:
            found = self._database.execute(
                "UPDATE asked SET held = 1 WHERE key = ? RETURNING times", (name,)
            ).fetchall()
            rows[magnitude_of(mementos)][magnitude_of(found[0][0] if found else 0)] += 1
        self._database.execute("COMMIT")
        for times, count in self._database.execute("SELECT times, count(*) FROM asked WHERE held = 0 GROUP BY times"):
            rows[0][magnitude_of(times)] += count
        return tuple(tuple(row) for row in rows)

    def close(self) -> None:
        """Forget everything."""
        self._database.close()


@contextmanager
def open_request_counter(rules: str = DEFAULT_RULES) -> Iterator[RequestCounter]:
    """Give what counts requests, in a temporary file."""
    with (
        TemporaryDirectory(prefix="unlost-") as folder,
        closing(RequestCounter(Path(folder, "requests"), rules)) as requests,
    ):
        yield requests


def tabulate_holdings(
    indexes: Sequence[str | PathLike[str]],
    problems: Problems,
    tabulate: Callable[[Iterator[tuple[str, int]]], AccessMatrix],
    on_progress: ProgressCallback | None = None,
) -> AccessMatrix:
    """Return what `take` makes of all URI-Rs of indexes, each once with its mementos. Raises InputError."""
    with TemporaryDirectory(prefix="unlost-") as folder:
        profile = Path(folder, "uris.cdxj")
        build_profiles(indexes, {"URIR": profile}, ProfileHeader("URIR"), problems, on_progress=on_progress)
        return tabulate(_read_profile(profile))


def _read_profile(profile: Path) -> Iterator[tuple[str, int]]:
    for line in read_lines(profile, Problems()):
        if line.text[:1] in (b"@", b"!"):
            continue
        name, _, rest = line.text.partition(b" ")
        yield name.decode("utf-8", "surrogateescape"), _frequency(rest)


def _frequency(rest: bytes) -> int:
    digits = rest.partition(b'"frequency":')[2].strip()
    end = next((at for at, byte in enumerate(digits) if not 48 <= byte <= 57), len(digits))
    return int(digits[:end] or b"0")
