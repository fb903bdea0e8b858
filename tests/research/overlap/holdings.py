"""Archives in memory with known holdings, for tests of the overlap."""

import random
from collections.abc import Iterable
from pathlib import Path

from tests.recover.stub_archive import Held, Stub
from unlost import uri as addresses
from unlost.research import OverlapState

ARCHIVES = ("a", "b", "c", "d")


def truth(pages: int, seed: int) -> dict[str, int]:
    """Return the sets of archives that hold each page, as `Membership` has them, at random."""
    dice = random.Random(seed)  # noqa: S311  not for secrets
    return {f"http://site{number % 7}.example/{number}": dice.randrange(1 << len(ARCHIVES)) for number in range(pages)}


def stubs(held: dict[str, int]) -> list[Stub]:
    """Return archives that hold them: of each page as many copies as the place of the archive says, one a year."""
    found = []
    for place, name in enumerate(ARCHIVES):
        copies = [
            Held(uri, f"{2010 + number}0102030405", f"<p>{uri} in {name}".encode())
            for uri, mask in held.items()
            if mask >> place & 1
            for number in range(place + 1)
        ]
        found.append(Stub(name, copies))
    return found


def begun(path: Path, uris: Iterable[str], seed: int = 0, sample: int | None = None) -> OverlapState:
    """Return a state with these pages."""
    state = OverlapState(path)
    if state.plan() is None:
        state.begin(dict, ((addresses.key(uri), uri.encode()) for uri in uris), seed, sample)
    return state
