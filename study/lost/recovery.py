"""Recovers a simulated site with the production code, and compares it with the original."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from study.lost.repository import SimulatedRepository
from study.lost.repository_models import RepositoryCapture, RepositoryModel
from study.lost.result import RecoveredCount, RecoveryResult
from study.lost.site import FileVersion, SimulatedSite, week_timestamp
from unlost.clock import SystemClock
from unlost.comparison import BreakdownRow, Site, TextComparer, breakdowns, compare_sites, open_site
from unlost.dates import to_iso
from unlost.recovery import RecoverOptions, RecoverPolicy, RecoveryScheduler, WarcStore
from unlost.recovery.state import RecoveryState, StateReader
from unlost.registry import RequestKind
from unlost.warc import HTTP_RESPONSE_TYPE, RECORD_END, format_http_head, format_record_header, make_record_id

RepositoryHoldings = tuple[RepositoryModel, Sequence[RepositoryCapture]]
"""A repository and its captures in some week."""


def write_original(site: SimulatedSite, week: int, file: Path) -> Path:
    """Write the site of a week as a WARC, as a crawler would, and return the file."""
    return write_captures(
        ((site.uri(each), week_timestamp(week, 6), site.version_in(each, week)) for each in site.files_in(week)), file
    )


def write_captures(captures: Iterable[tuple[str, str, FileVersion]], file: Path) -> Path:
    """Write captures (URL, date, content) as a WARC and return the file."""
    with file.open("wb") as output:
        for uri, datetime, found in captures:
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


def recover_site(
    site: SimulatedSite,
    week: int,
    policy: RecoverPolicy,
    holdings: Iterable[RepositoryHoldings],
    original: Site,
    folder: Path,
) -> RecoveryResult:
    """Recover a site from some repositories into a new folder, and return the result.

    original: The site in that week.
    """
    requests_sent: Counter[tuple[str, RequestKind]] = Counter()
    repositories = {habit.id: SimulatedRepository(habit, held, requests_sent) for habit, held in holdings}
    folder.mkdir()
    clock = SystemClock()
    with RecoveryState(folder) as state:
        warcs = WarcStore(folder / "warc", clock, "study")
        try:
            recovery = RecoveryScheduler(
                # As in the dissertation: no resources of other hosts and no error pages.
                RecoverOptions(site.url, policy=policy, page_requisites=False, drop_rejected=True),
                state,
                warcs,
                repositories,
                clock,
                lambda *_: None,
                requests_sent=requests_sent,
            )
            asyncio.run(recovery.run())
        finally:
            warcs.close()
    with StateReader(folder) as reading:
        resources = Counter(each.archive or "" for each in reading.chosen_captures())
    return _compare(site, week, policy, tuple(repositories), original, folder, resources, requests_sent)


def _compare(
    site: SimulatedSite,
    week: int,
    policy: RecoverPolicy,
    archives: tuple[str, ...],
    original: Site,
    folder: Path,
    resources: Counter[str],
    requests_sent: Counter[tuple[str, RequestKind]],
) -> RecoveryResult:
    recovery = open_site(folder)
    with TextComparer(original, recovery) as texts:
        comparison = compare_sites(original, recovery, texts.similarity)
    tables = {table.name: table.rows for table in breakdowns(comparison)}
    requests: Counter[str] = Counter()
    for (archive, _), count in requests_sent.items():
        requests[archive] += count
    return RecoveryResult(
        site.profile.name,
        week,
        policy.value,
        archives,
        comparison.counts,
        comparison.similar,
        comparison.changed_texts,
        comparison.held,
        {row.label: _count_rows([row]) for row in tables["group"]},
        {row.label: _count_rows([row]) for row in tables["query"]},
        {
            "up to 3": _count_rows(row for row in tables["depth"] if row.label in tuple("0123")),
            "deeper": _count_rows(row for row in tables["depth"] if row.label not in tuple("0123")),
        },
        dict(resources),
        dict(requests),
    )


def _count_rows(rows: Iterable[BreakdownRow]) -> RecoveredCount:
    found = list(rows)
    return sum(row.original for row in found), sum(row.recovered for row in found)
