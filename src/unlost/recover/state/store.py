"""The state of a recovery: all tables, options and counters, for the one process that writes them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.crawl.scope import folder_url
from unlost.errors import UsageError
from unlost.recover.options import RecoverOptions, RecoverPolicy, has_first_version_options, parse_options
from unlost.recover.ranking import CaptureQuality
from unlost.recover.state.captures import CaptureTable, ListingTable, RecordTable, RejectionTable
from unlost.recover.state.queries import FinishedResource, finished_resources
from unlost.recover.state.resources import CandidateTable, RecoveryResourceTable
from unlost.recover.state.schema import REQUESTS_FACT, SKIPPED_LINKS_FACT, RecoveryStateFile
from unlost.registry.models import RequestKind
from unlost.uri.names import page_name

RequestsSent = Mapping[tuple[str, RequestKind], int]
"""How many requests went to which archive, by kind."""

_SCOPE_OPTIONS = ("urls", "page", "subdomains", "depth", "include", "exclude", "page_requisites")
_FOLLOW_AGAIN_FACT = "follow-again"
_OPTIONS_VERSION_FACT = "options-of"  # the version whose defaults a recovery was begun with, unless they are today's


class RecoveryState:
    """The state of the recovery in a folder, which must exist. Use it as a context manager; only one process can.

    Raises InputError, OSError as StateFile does.
    """

    def __init__(self, folder: Path) -> None:
        self._file = RecoveryStateFile(folder)
        self.resources = RecoveryResourceTable(self._file)
        self.captures = CaptureTable(self._file)
        self.listings = ListingTable(self._file)
        self.records = RecordTable(self._file)
        self.rejections = RejectionTable(self._file)
        self.candidates = CandidateTable(self._file)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep what was changed, unless something went wrong meanwhile, and close the file."""
        self._file.__exit__(kind, error, trace)

    def commit(self) -> None:
        """Make all changes last. Raises OSError for a full disk."""
        self._file.commit()

    def fact(self, name: str) -> str | None:
        """Return what was kept under a name; None if nothing was."""
        row = self._file.connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_fact(self, name: str, value: str) -> None:
        """Keep something under a name."""
        self._file.begin()
        self._file.connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    def requests_by_archive(self) -> dict[str, dict[str, int]]:
        """Return how many requests were sent over all runs, by archive, then by kind; none if nobody counted."""
        found: dict[str, dict[str, int]] = json.loads(self.fact(REQUESTS_FACT) or "{}")
        return found

    def store_requests(self, before: Mapping[str, Mapping[str, int]], sent: RequestsSent) -> None:
        """Keep how many requests were sent: those of runs before this one, and of this one so far."""
        total = {archive: dict(kinds) for archive, kinds in before.items()}
        for (archive, work), count in sent.items():
            kinds = total.setdefault(archive, {})
            kinds[work.value] = kinds.get(work.value, 0) + count
        text = json.dumps(total, sort_keys=True)
        if text != self.fact(REQUESTS_FACT):
            self.set_fact(REQUESTS_FACT, text)

    def skipped_links(self) -> dict[str, int]:
        """Return how many links were not followed over all runs, by the reason; none if nobody counted."""
        found: dict[str, int] = json.loads(self.fact(SKIPPED_LINKS_FACT) or "{}")
        return found

    def store_skipped_links(self, before: Mapping[str, int], trapped: Mapping[str, int]) -> None:
        """Keep how many links were not followed: in runs before this one, and in this one so far."""
        total = dict(before)
        for reason, count in trapped.items():
            total[reason] = total.get(reason, 0) + count
        text = json.dumps(total, sort_keys=True)
        if total and text != self.fact(SKIPPED_LINKS_FACT):
            self.set_fact(SKIPPED_LINKS_FACT, text)

    def finished_resources(self) -> Iterator[FinishedResource]:
        """Yield what was recovered, and what is missing, in the order in which it was found."""
        return finished_resources(self._file.connection)

    def options(self) -> RecoverOptions | None:
        """Return what is recovered here; None if nobody has said so yet."""
        text = self.fact("plan")
        return None if text is None else parse_options(json.loads(text))

    def check_options(self, options: RecoverOptions) -> None:
        """Change nothing. Raises UsageError if another site is recovered here, or addresses are read otherwise."""
        before = self.options()
        if before is not None and not _is_same_site(before, options):
            raise UsageError(f"the folder has a recovery of {before.url}: give another one by -o")
        if before is not None and before.ignore_case != options.ignore_case:
            message = "the folder has a recovery with another --ignore-case: give another one by -o, or delete"
            raise UsageError(f"{message} state.sqlite, and what is kept is read anew")

    def store_options(self, options: RecoverOptions) -> None:
        """Say what is recovered here. Raises as `check_plan` does.

        The same site may be spelt otherwise than before: its first spelling stays. Anything else may change from one
        run to the next: what was recovered stays, and where other addresses are wanted than before, its links are
        followed again.
        """
        self.check_options(options)
        before = self.options()
        if before is not None and _has_other_scope(before, options):
            self.resources.reset_discovery()
            self.set_fact(SKIPPED_LINKS_FACT, "{}")  # all links are followed again
            self.candidates.clear()
            self.set_refollow_links(refollow=True)
        if before is not None and (before.policy, before.include_left_out) != (
            options.policy,
            options.include_left_out,
        ):
            self.resources.clear_skip_reasons()
        self._set_rejected_quality(CaptureQuality.REJECTED if options.drop_rejected else CaptureQuality.DOUBTFUL)
        if self._has_first_version_options():
            self.set_fact(_OPTIONS_VERSION_FACT, "0.1.0")
        self.set_fact("plan", json.dumps(asdict(options if before is None else replace(options, url=before.url))))

    def inherited_options(self) -> RecoverOptions | None:
        """Return the stored plan if a version with other defaults made the recovery: its options stay in force."""
        return self.options() if self._has_first_version_options() or self.fact(_OPTIONS_VERSION_FACT) else None

    def _has_first_version_options(self) -> bool:
        return has_first_version_options(json.loads(self.fact("plan") or "{}"))

    def _set_rejected_quality(self, quality: CaptureQuality) -> None:
        """Count rejected captures as doubtful, or not at all. Resources for which that matters are queued again."""
        for number in self.rejections.set_quality(quality):
            self.resources.set_best_record(number, self.records.best(number))
            self.resources.requeue("id = ?", number)
            self.set_refollow_links(refollow=True)

    @property
    def must_refollow_links(self) -> bool:
        """Whether there may be copies whose links were not followed yet."""
        return bool(self.fact(_FOLLOW_AGAIN_FACT))

    def set_refollow_links(self, *, refollow: bool) -> None:
        """Say whether links of copies that are kept are to be followed; it lasts until it is said otherwise."""
        self.set_fact(_FOLLOW_AGAIN_FACT, "yes" if refollow else "")


def _is_same_site(before: RecoverOptions, options: RecoverOptions) -> bool:
    """Return whether both begin from one page, in one folder, however it is spelt: a host is its home page."""
    name = partial(page_name, ignore_case=before.ignore_case)
    return name(before.url) == name(options.url) and name(folder_url(before.url)) == name(folder_url(options.url))


def _has_other_scope(before: RecoverOptions, options: RecoverOptions) -> bool:
    """Return whether addresses are wanted that were not, or are no longer."""
    return _listing_coverage(before) > _listing_coverage(options) or any(
        getattr(before, name) != getattr(options, name) for name in _SCOPE_OPTIONS
    )


def _listing_coverage(options: RecoverOptions) -> int:
    """Return how much of what is listed a plan fetches: 0 only what is linked, 1 all but what is left out, 2 all."""
    if not options.policy.uses_listings:
        return 0
    return 2 if options.policy is RecoverPolicy.EXHAUSTIVE or options.include_left_out else 1
