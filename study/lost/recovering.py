"""Recovers a made-up site as the command would, and compares it with the original."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from study.lost.habits import Habit, Held
from study.lost.outcome import Outcome, Tally
from study.lost.repository import MadeRepository
from study.lost.site import File, MadeSite, moment
from unlost.clock import SystemClock
from unlost.comparison import BreakdownRow, Site, TextComparer, breakdowns, compare_sites, open_site
from unlost.dates import to_iso
from unlost.recovery import RecoverOptions, RecoverPolicy, RecoveryScheduler, WarcStore
from unlost.recovery.state import RecoveryState, StateReader
from unlost.registry import RequestKind
from unlost.warc import HTTP_RESPONSE_TYPE, RECORD_END, format_http_head, format_record_header, make_record_id

Shelf = tuple[Habit, Sequence[Held]]
"""A repository, and what it has in some week."""

_DEEP = 3  # segments of a path, beyond which the dissertation calls it deep


def write_original(site: MadeSite, week: int, file: Path) -> Path:
    """Write the site as a crawler would have saved it in a week, and return the file."""
    return write_copies(((site.uri(each), moment(week, 6), site.file(each, week)) for each in site.at(week)), file)


def write_copies(copies: Iterable[tuple[str, str, File]], file: Path) -> Path:
    """Write copies, each with its address and date, as a WARC, and return the file."""
    with file.open("wb") as output:
        for uri, datetime, found in copies:
            head, _ = format_http_head(200, (), len(found.body), found.mime, None)
            block = head + found.body
            fields = [
                ("WARC-Type", "response"),
                ("WARC-Record-ID", make_record_id(uri, datetime)),
                ("WARC-Target-URI", uri),
                ("WARC-Date", to_iso(datetime)),
                ("Content-Type", HTTP_RESPONSE_TYPE),
                ("Content-Length", str(len(block))),
            ]
            output.write(format_record_header(fields) + block + RECORD_END)
    return file


def recovered(
    site: MadeSite, week: int, policy: RecoverPolicy, shelves: Iterable[Shelf], original: Site, folder: Path
) -> Outcome:
    """Recover a site from some repositories, into a new folder, and return what came of it.

    original: the site as it is in that week.
    """
    sent: Counter[tuple[str, RequestKind]] = Counter()
    repositories = {habit.id: MadeRepository(habit, held, sent) for habit, held in shelves}
    folder.mkdir()
    clock = SystemClock()
    with RecoveryState(folder) as state:
        warcs = WarcStore(folder / "warc", clock, "study")
        try:
            recovery = RecoveryScheduler(
                # As the dissertation recovered: nothing of other hosts, and no page that is an error page.
                RecoverOptions(site.url, policy=policy, page_requisites=False, drop_rejected=True),
                state,
                warcs,
                repositories,
                clock,
                lambda *_: None,
                requests_sent=sent,
            )
            asyncio.run(recovery.run())
        finally:
            warcs.close()
    with StateReader(folder) as reading:
        given = Counter(each.archive or "" for each in reading.chosen_captures())
    return _compared(site, week, policy, tuple(repositories), original, folder, given, sent)


def _compared(
    site: MadeSite,
    week: int,
    policy: RecoverPolicy,
    archives: tuple[str, ...],
    original: Site,
    folder: Path,
    given: Counter[str],
    sent: Counter[tuple[str, RequestKind]],
) -> Outcome:
    back = open_site(folder)
    with TextComparer(original, back) as texts:
        comparison = compare_sites(original, back, texts.similarity)
    tables = {table.name: table.rows for table in breakdowns(comparison)}
    requests: Counter[str] = Counter()
    for (archive, _), count in sent.items():
        requests[archive] += count
    return Outcome(
        site.profile.name,
        week,
        policy.value,
        archives,
        comparison.counts,
        comparison.similar,
        comparison.changed_texts,
        comparison.held,
        {row.label: _tally([row]) for row in tables["group"]},
        {row.label: _tally([row]) for row in tables["query"]},
        {
            "up to 3": _tally(row for row in tables["depth"] if row.label in tuple("0123")),
            "deeper": _tally(row for row in tables["depth"] if row.label not in tuple("0123")),
        },
        dict(given),
        dict(requests),
    )


def _tally(rows: Iterable[BreakdownRow]) -> Tally:
    found = list(rows)
    return sum(row.original for row in found), sum(row.recovered for row in found)
