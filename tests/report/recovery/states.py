"""Recovery states made without archives: small ones with given resources, and one of any size."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from unlost.capture import Capture
from unlost.html import LinkKind
from unlost.recovery import RecoverOptions, RecoveryRecord
from unlost.recovery.state import ListingRow, ListingStatus, NewResource, RecoveryState, ResourceStatus, StateReader
from unlost.report.recovery import collect_stats, render_report_page
from unlost.sqlite import STATE_FILE_NAME

SITE = "http://lost.example/"
NOW = "20260101000000"


@dataclass(frozen=True, slots=True)
class SampleResource:
    """A resource of a state.

    Attributes:
        path: Its path on the site, and its name.
        date: Datetime of its capture; None without a capture.
        reason: Why it is missing.
        links: Paths that it links to.
        others: Archive and date of further captures.
        verdict: Kind and reason of a rejection.
        standing: Its status if it is neither recovered nor missing.
    """

    path: str
    date: str | None = None
    archive: str = "a"
    mime: str | None = "text/html"
    status: int | None = 200
    urim: str | None = None
    use: LinkKind = LinkKind.PAGE
    reason: str | None = None
    links: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    verdict: tuple[str, str] | None = None
    standing: ResourceStatus | None = None


def make_state(folder: Path, resources: Sequence[SampleResource], url: str | None = SITE) -> Path:
    """Make the state of a recovery with these resources; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with RecoveryState(folder) as state:
        if url is not None:
            state.store_options(RecoverOptions(url))
        numbers = state.resources.enqueue([_new_resource(each) for each in resources])
        known = dict(zip((each.path for each in resources), numbers, strict=True))
        for each, number in zip(resources, numbers, strict=True):
            _fill(state, each, number)
            linked = [_new_resource(other) for other in resources if other.path in each.links]
            state.resources.enqueue(linked, known[each.path])
        for each, number in zip(resources, numbers, strict=True):
            _finish(state, each, number)
    return folder


def _new_resource(each: SampleResource) -> NewResource:
    return NewResource(f"lost.example/{each.path}", SITE + each.path, each.use, 1)


def _capture(each: SampleResource, archive: str, date: str) -> Capture:
    return Capture(
        SITE + each.path, None, date, each.status, each.mime, archive=archive, urim=each.urim,
    )  # fmt: skip


def _fill(state: RecoveryState, each: SampleResource, number: int) -> None:
    listed = [*each.others, *([(each.archive, each.date)] if each.date else [])]
    state.captures.add([(number, _capture(each, archive, date)) for archive, date in listed])
    if each.date is None:
        return
    record = RecoveryRecord(
        _capture(each, each.archive, each.date), None, None, None, NOW, "unlost-00001.warc.gz", number, 1
    )
    record_id = state.records.add(number, 0, record)
    state.resources.set_best_record(number, record_id)
    if each.verdict is not None:
        state.rejections.add(record_id, 0, *each.verdict)


def _finish(state: RecoveryState, each: SampleResource, number: int) -> None:
    if each.standing is ResourceStatus.LISTED:
        state.resources.unqueue(number)
    elif each.standing is None:
        standing = ResourceStatus.MISSING if each.reason else ResourceStatus.RECOVERED
        state.resources.finish(number, standing, NOW, each.reason)


def store_listing(folder: Path, archive: str, outcome: ListingStatus, message: str | None = None) -> None:
    """Store the outcome of an archive's listing."""
    with RecoveryState(folder) as state:
        state.listings.store(ListingRow(archive, SITE, outcome, 0, message))


def make_large_state(folder: Path, count: int) -> Path:
    """Make the state of a recovery with many resources: every tenth is missing, every hundredth is rejected.

    Each has three links and two captures, from ten years.
    """
    make_state(folder, [])
    with closing(sqlite3.connect(folder / STATE_FILE_NAME)) as state, state:
        run = state.executemany
        numbers = range(1, count + 1)
        run(
            "INSERT INTO resource (id, name, folded, uri, use, standing, hops, archive, record, reason, changed)"
            " VALUES (?1, 'n' || ?1, 'n' || ?1, ?2, 'page', ?3, 1, '', ?4, ?5, ?6)",
            (
                (each, f"{SITE}{each}.html", *_end(each), NOW)
                for each in numbers
            ),
        )  # fmt: skip
        run(
            "INSERT OR IGNORE INTO link VALUES (?, ?)",
            ((each, each * step % count + 1) for each in numbers for step in (2, 3, 5)),
        )
        run(
            "INSERT INTO capture (resource, archive, datetime, uri, revisit) VALUES (?, ?, ?, ?, 0)",
            ((each, archive, _date(each), f"{SITE}{each}.html") for each in numbers for archive in "ab"),
        )
        run(
            "INSERT INTO record (id, resource, worth, file, offset, size, data) VALUES (?1, ?1, 0, 'f', ?1, 1, ?2)",
            ((each, _data(each)) for each in numbers),
        )
        run(
            "INSERT INTO rejected VALUES (?, 0, 'parked', 'for sale')",
            ((each,) for each in numbers if each % 100 == 0),
        )
    return folder


def _end(number: int) -> tuple[str, int | None, str | None]:
    return ("missing", None, "not-held") if number % 10 == 0 else ("recovered", number, None)


def _date(number: int) -> str:
    return f"{2000 + number % 10}{number % 12 + 1:02}01000000"


def _data(number: int) -> str:
    capture = {"uri": f"{SITE}{number}.html", "datetime": _date(number), "status": 200, "mime": "text/html"}
    capture |= {"archive": "a", "urim": f"http://a.example/{_date(number)}/{SITE}{number}.html"}
    return json.dumps({"source": None, "truncated": None, "recovered": NOW, "capture": capture})


def report_html(folder: Path, language: str = "en") -> str:
    """Return the HTML report of a recovery."""
    with StateReader(folder) as state:
        return render_report_page(state, collect_stats(state), has_files=True, language=language)
