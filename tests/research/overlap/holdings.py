"""Archives in memory with known holdings, for tests of the overlap."""

import random
from collections.abc import Iterable
from pathlib import Path

from tests.recovery.stub_archive import Held, Stub
from unlost import uri as addresses
from unlost.research import OverlapState

ARCHIVES = ("a", "b", "c", "d")


def random_holdings(pages: int, seed: int) -> dict[str, int]:
    """Return a random set of archives for each page, as in `ArchiveMembership`."""
    random_ = random.Random(seed)  # noqa: S311  not for secrets
    return {
        f"http://site{number % 7}.example/{number}": random_.randrange(1 << len(ARCHIVES)) for number in range(pages)
    }


def archives_of(holdings: dict[str, int]) -> list[Stub]:
    """Return archives with these holdings: the n-th archive has n captures of each page, one a year."""
    found = []
    for place, name in enumerate(ARCHIVES):
        captures = [
            Held(uri, f"{2010 + number}0102030405", f"<p>{uri} in {name}".encode())
            for uri, mask in holdings.items()
            if mask >> place & 1
            for number in range(place + 1)
        ]
        found.append(Stub(name, captures))
    return found


def open_state(path: Path, uris: Iterable[str], seed: int = 0, sample: int | None = None) -> OverlapState:
    """Open a state, and add these pages if it is new."""
    state = OverlapState(path)
    if state.plan() is None:
        state.begin(dict, ((addresses.key(uri), uri.encode()) for uri in uris), seed, sample)
    return state
