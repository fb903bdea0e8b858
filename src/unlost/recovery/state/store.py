"""The database of a recovery: all tables, options and counters, for the one process that writes them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.crawl.scope import folder_url
from unlost.errors import UsageError
from unlost.recovery.options import RecoverOptions, RecoverPolicy, has_first_version_options, parse_options
from unlost.recovery.ranking import CaptureQuality
from unlost.recovery.state.captures import CaptureTable, ListingTable, RecordTable, RejectionTable
from unlost.recovery.state.queries import FinishedResource, finished_resources
from unlost.recovery.state.resources import CandidateTable, RecoveryResourceTable
from unlost.recovery.state.schema import REQUESTS_FACT, SKIPPED_LINKS_FACT, RecoveryStateFile
from unlost.registry.models import RequestKind
from unlost.uri.names import page_name

RequestsSent = Mapping[tuple[str, RequestKind], int]
"""Number of requests sent, by archive and kind."""

_SCOPE_OPTIONS = ("urls", "page", "subdomains", "depth", "include", "exclude", "page_requisites")
_FOLLOW_AGAIN_FACT = "follow-again"
_OPTIONS_VERSION_FACT = "options-of"  # the version that created the recovery, if its defaults differed


class RecoveryState:
    """The state of the recovery in a folder, which must exist. A context manager; one process at a time can open it.

    Raises:
        InputError: The file is invalid or in use.
        OSError: The file cannot be read or written.
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
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit unless an exception was raised, and close the file."""
        self._file.__exit__(kind, error, trace)

    def commit(self) -> None:
        """Commit all changes. Raises OSError if the disk is full."""
        self._file.commit()

    def fact(self, name: str) -> str | None:
        """Return the value of a fact, or None if it was never set."""
        row = self._file.connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_fact(self, name: str, value: str) -> None:
        """Store the value of a fact."""
        self._file.begin()
        self._file.connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    def requests_by_archive(self) -> dict[str, dict[str, int]]:
        """Return the number of requests sent over all runs, by archive, then by kind; empty if not counted."""
        requests: dict[str, dict[str, int]] = json.loads(self.fact(REQUESTS_FACT) or "{}")
        return requests

    def store_requests(self, before: Mapping[str, Mapping[str, int]], sent: RequestsSent) -> None:
        """Store the number of requests sent: `before` this run and in it so far."""
        total = {archive: dict(kinds) for archive, kinds in before.items()}
        for (archive, kind), count in sent.items():
            kinds = total.setdefault(archive, {})
            kinds[kind.value] = kinds.get(kind.value, 0) + count
        text = json.dumps(total, sort_keys=True)
        if text != self.fact(REQUESTS_FACT):
            self.set_fact(REQUESTS_FACT, text)

    def skipped_links(self) -> dict[str, int]:
        """Return the number of links not followed over all runs, by reason; empty if not counted."""
        links: dict[str, int] = json.loads(self.fact(SKIPPED_LINKS_FACT) or "{}")
        return links

    def store_skipped_links(self, before: Mapping[str, int], skipped: Mapping[str, int]) -> None:
        """Store the number of links not followed: `before` this run and in it so far."""
        total = dict(before)
        for reason, count in skipped.items():
            total[reason] = total.get(reason, 0) + count
        text = json.dumps(total, sort_keys=True)
        if total and text != self.fact(SKIPPED_LINKS_FACT):
            self.set_fact(SKIPPED_LINKS_FACT, text)

    def finished_resources(self) -> Iterator[FinishedResource]:
        """Yield recovered and missing resources in order of discovery."""
        return finished_resources(self._file.connection)

    def options(self) -> RecoverOptions | None:
        """Return the stored options, or None for a new recovery."""
        text = self.fact("plan")
        return None if text is None else parse_options(json.loads(text))

    def check_options(self, options: RecoverOptions) -> None:
        """Check that the options can be applied to this recovery.

        Raises:
            UsageError: The folder belongs to another site, or URLs were normalized otherwise.
        """
        before = self.options()
        if before is not None and not _is_same_site(before, options):
            raise UsageError(f"the folder has a recovery of {before.url}: give another one by -o")
        if before is not None and before.ignore_case != options.ignore_case:
            message = "the folder has a recovery with another --ignore-case: give another one by -o, or delete"
            raise UsageError(f"{message} state.sqlite, and what is kept is read anew")

    def store_options(self, options: RecoverOptions) -> None:
        """Check and store the options.

        The start URL is stored in the spelling of the first run. Other options may change between runs: recovered
        resources are retained, and if the scope differs, their links are followed again.

        Raises:
            UsageError: As `check_options`.
        """
        self.check_options(options)
        before = self.options()
        if before is not None and _has_other_scope(before, options):
            self.resources.reset_discovery()
            self.set_fact(SKIPPED_LINKS_FACT, "{}")  # counted again, because all links are followed again
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
        """Return the stored options if a version with other defaults created the recovery; they remain in force."""
        return self.options() if self._has_first_version_options() or self.fact(_OPTIONS_VERSION_FACT) else None

    def _has_first_version_options(self) -> bool:
        return has_first_version_options(json.loads(self.fact("plan") or "{}"))

    def _set_rejected_quality(self, quality: CaptureQuality) -> None:
        """Set the quality of rejected captures, and queue the resources that are affected."""
        for resource_id in self.rejections.set_quality(quality):
            self.resources.set_best_record(resource_id, self.records.best(resource_id))
            self.resources.requeue("id = ?", resource_id)
            self.set_refollow_links(refollow=True)

    @property
    def must_refollow_links(self) -> bool:
        """Whether there may be stored captures whose links were not followed yet."""
        return bool(self.fact(_FOLLOW_AGAIN_FACT))

    def set_refollow_links(self, *, refollow: bool) -> None:
        """Set whether links of stored captures must be followed again. The setting is persistent."""
        self.set_fact(_FOLLOW_AGAIN_FACT, "yes" if refollow else "")


def _is_same_site(before: RecoverOptions, options: RecoverOptions) -> bool:
    """Return whether both have the same start page and folder, in any spelling."""
    name = partial(page_name, ignore_case=before.ignore_case)
    return name(before.url) == name(options.url) and name(folder_url(before.url)) == name(folder_url(options.url))


def _has_other_scope(before: RecoverOptions, options: RecoverOptions) -> bool:
    return _listing_coverage(before) > _listing_coverage(options) or any(
        getattr(before, name) != getattr(options, name) for name in _SCOPE_OPTIONS
    )


def _listing_coverage(options: RecoverOptions) -> int:
    """Return how much of the listings is fetched: 0 only linked resources, 1 also others unless left out, 2 all."""
    if not options.policy.uses_listings:
        return 0
    return 2 if options.policy is RecoverPolicy.EXHAUSTIVE or options.include_left_out else 1
