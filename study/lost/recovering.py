"""Recovers a made-up site as the command would, and compares it with the original."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from study.lost.habits import Habit, Held
from study.lost.outcome import Outcome, Tally
from study.lost.repository import MadeRepository
from study.lost.site import File, MadeSite, moment
from unlost.archives.archive import Work
from unlost.clock import SystemClock
from unlost.dates import to_iso
from unlost.formats.warc_writing.http_head import http_head
from unlost.formats.warc_writing.records import END, HTTP_RESPONSE, head_of, id_of
from unlost.measure.breakdown import Row, breakdowns
from unlost.measure.comparison import compare
from unlost.measure.resource import Site
from unlost.measure.sites.opening import open_site
from unlost.measure.texts import Texts
from unlost.recover.plan import Plan, Policy
from unlost.recover.recovery import Recovery
from unlost.recover.state.reading import StateReading
from unlost.recover.state.state import State
from unlost.recover.warcs import Warcs

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
            head, _ = http_head(200, (), len(found.body), found.mime, None)
            block = head + found.body
            fields = [
                ("WARC-Type", "response"),
                ("WARC-Record-ID", id_of(uri, datetime)),
                ("WARC-Target-URI", uri),
                ("WARC-Date", to_iso(datetime)),
                ("Content-Type", HTTP_RESPONSE),
                ("Content-Length", str(len(block))),
            ]
            output.write(head_of(fields) + block + END)
    return file


def recovered(
    site: MadeSite, week: int, policy: Policy, shelves: Iterable[Shelf], original: Site, folder: Path
) -> Outcome:
    """Recover a site from some repositories, into a new folder, and return what came of it.

    original: the site as it is in that week.
    """
    sent: Counter[tuple[str, Work]] = Counter()
    repositories = {habit.id: MadeRepository(habit, held, sent) for habit, held in shelves}
    folder.mkdir()
    clock = SystemClock()
    with State(folder) as state:
        warcs = Warcs(folder / "warc", clock, "study")
        try:
            recovery = Recovery(
                # As the dissertation recovered: nothing of other hosts, and no page that is an error page.
                Plan(site.url, policy=policy, page_requisites=False, drop_rejected=True),
                state,
                warcs,
                repositories,
                clock,
                lambda *_: None,
                sent=sent,
            )
            asyncio.run(recovery.run())
        finally:
            warcs.close()
    with StateReading(folder) as reading:
        given = Counter(each.archive or "" for each in reading.chosen())
    return _compared(site, week, policy, tuple(repositories), original, folder, given, sent)


def _compared(
    site: MadeSite,
    week: int,
    policy: Policy,
    archives: tuple[str, ...],
    original: Site,
    folder: Path,
    given: Counter[str],
    sent: Counter[tuple[str, Work]],
) -> Outcome:
    back = open_site(folder)
    with Texts(original, back) as texts:
        comparison = compare(original, back, texts.likeness)
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


def _tally(rows: Iterable[Row]) -> Tally:
    found = list(rows)
    return sum(row.original for row in found), sum(row.recovered for row in found)
