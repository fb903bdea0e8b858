"""Recoveries of made-up sites on which all twelve factors are known, and what they do to coming back was planted."""

import json
import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date as day
from math import exp, isnan, log10, nan
from pathlib import Path

from tests.report.recovery.states import NOW
from tests.warc.warcs import record
from unlost.recovery import RecoverOptions
from unlost.recovery.state import RecoveryState
from unlost.sqlite import STATE_FILE_NAME

TLDS = {"com": "com", "org": "org", "net": "net", "edu": "edu", "gov": "gov", "fr": "country", "example": "other"}
ENDINGS = {"html": "page", "png": "image", "pdf": "document", "zip": "other"}
NEWEST = "20200101000000"

PLANTED = {
    "external links": 0.5,
    "internal links": 1.0,
    "rank": -0.3,
    "hops": -0.4,
    "path depth": -0.5,
    "query parameters": -0.6,
    "age": 0.1,
    "birth rate": -1.0,
    "site size": -0.8,
    "resource size": -0.5,
    "type: image": -0.7,
    "type: document": 0.6,
    "type: other": -1.2,
    "domain: org": 0.4,
    "domain: net": -0.4,
    "domain: edu": 0.8,
    "domain: gov": 0.5,
    "domain: country": -0.6,
    "domain: other": -0.3,
}
"""What one more of each adds to the logarithm of the odds of coming back."""

CONSTANT = 4.1


@dataclass
class Truth:
    """What is known of all sites.

    rows: by resource, the numbers of all columns of the models in the order of `PLANTED`, `nan` for what nobody knows;
        came: whether it came back. types, tlds: by resource.
    """

    folders: list[Path] = field(default_factory=list)
    originals: list[Path] = field(default_factory=list)
    ranks: list[str] = field(default_factory=list)
    backlinks: list[str] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    came: list[bool] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    tlds: list[str] = field(default_factory=list)


def plant(folder: Path, sites: int, seed: int) -> Truth:
    """Make the recoveries, originals and lists; return what is known of them."""
    rng = random.Random(seed)  # noqa: S311  not for secrets
    truth = Truth()
    for number in range(sites):
        _plant_site(folder, number, rng, truth)
    return truth


def _plant_site(folder: Path, number: int, dice: random.Random, truth: Truth) -> None:
    tld = list(TLDS)[number % len(TLDS)]
    host = f"site{number}.{tld}"
    size = dice.choice([40, 60, 90, 140, 200])
    links, rank = dice.choice([0, 9, 99, 999, 9999]), 10 ** dice.uniform(1, 6)
    truth.ranks.append(f"{rank!r},{host}")
    truth.backlinks.append(f"{host}\t{links}")
    # Every resource is listed in one year at least; its birth is the first of them.
    share_old = dice.uniform(0.1, 0.9)
    years = [["2001", *(["2005"] if dice.random() < 0.5 else [])] if dice.random() < share_old else ["2005"]
             for _ in range(size)]  # fmt: skip
    listed = sum("2005" in each for each in years)
    born = sum(each == ["2005"] for each in years)
    birth_rate = born / listed if listed else nan
    resources, arrows, bodies = [], [], []
    recovered: list[tuple[int, str]] = []
    for place in range(1, size + 1):
        ending = dice.choice(list(ENDINGS))
        depth, parameters, hops = dice.randrange(5), dice.randrange(4), dice.randrange(1, 7)
        query = "&".join(f"p{at}={place}" for at in range(parameters))
        path = "".join(f"d{at}/" for at in range(depth)) + f"r{place}.{ending}"
        uri = f"http://{host}/{path}" + (f"?{query}" if query else "")
        sources = dice.sample(recovered, min(len(recovered), dice.choice([1, 2, 5, 12]))) if recovered else []
        oldest = min((date for _, date in sources), default=None)
        age = nan if oldest is None else _days(oldest) / 365.25
        length = int(10 ** dice.uniform(0.5, 3.5))
        row = [
            log10(links + 1), log10(len(sources) + 1), log10(rank), hops, depth + 1, parameters, age, birth_rate,
            log10(size), log10(length + 1),
            *(float(ENDINGS[ending] == kind) for kind in ("image", "document", "other")),
            *(float(TLDS[tld] == name) for name in ("org", "net", "edu", "gov", "country", "other")),
        ]  # fmt: skip
        odds = CONSTANT + sum(a * b for a, b in zip(PLANTED.values(), row, strict=True) if not isnan(b))
        is_first = place == 1  # it has the newest copy, from which ages are counted
        came = is_first or dice.random() < 1 / (1 + exp(-odds))
        date = NEWEST if is_first else f"{dice.randrange(2002, 2019)}0101000000"
        if came:
            recovered.append((place, date))
        resources.append((place, uri, hops, came, date))
        arrows += [(source, place) for source, _ in sources]
        bodies.append((uri, length))
        truth.rows.append(row)
        truth.came.append(came)
        truth.types.append(ENDINGS[ending])
        truth.tlds.append(TLDS[tld])
    place_of_it = folder / f"{host}.recovery"
    write_state(place_of_it, host, resources, arrows, years)
    truth.folders.append(place_of_it)
    original = folder / f"{host}.warc"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"
    original.write_bytes(b"".join(record(head + b"x" * length, uri=uri.replace("{", "{{")) for uri, length in bodies))
    truth.originals.append(original)


def _days(date: str) -> int:
    return (day(2020, 1, 1) - day(int(date[:4]), int(date[4:6]), int(date[6:8]))).days


def write_state(
    folder: Path,
    host: str,
    resources: list[tuple[int, str, int, bool, str]],
    arrows: list[tuple[int, int]],
    years: list[list[str]],
) -> None:
    """Write the state of a recovery. resources: id, URL, hops, whether it was recovered, date of its capture."""
    folder.mkdir()
    with RecoveryState(folder) as state:
        state.store_options(RecoverOptions(f"http://{host}/"))
    with closing(sqlite3.connect(folder / STATE_FILE_NAME)) as data, data:
        for place, uri, hops, came, date in resources:
            name = uri.removeprefix("http://")
            capture = {"uri": uri, "datetime": date, "status": 200, "mime": "text/html", "archive": "a", "urim": None}
            if came:
                stored = json.dumps({"source": None, "truncated": None, "recovered": NOW, "capture": capture})
                data.execute(
                    "INSERT INTO record (id, resource, worth, file, offset, size, data) "
                    "VALUES (?1, ?1, 0, 'f', ?1, 1, ?2)",
                    (place, stored),
                )
            data.execute(
                "INSERT INTO resource (id, name, folded, uri, use, standing, hops, archive, record, reason, changed) "
                "VALUES (?1, ?2, ?2, ?3, 'page', ?4, ?5, '', ?6, ?7, ?8)",
                (place, name, uri, "recovered" if came else "missing", hops, place if came else None,
                 None if came else "not-held", NOW),
            )  # fmt: skip
            data.executemany(
                "INSERT INTO capture (resource, archive, datetime, uri, revisit) VALUES (?, 'a', ?, ?, 0)",
                [(place, f"{year}0101000000", uri) for year in years[place - 1]],
            )
        data.executemany("INSERT INTO link VALUES (?, ?)", arrows)
