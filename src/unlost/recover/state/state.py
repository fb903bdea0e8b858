"""All that a recovery knows."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.archives.archive import Work
from unlost.crawl.bounds import folder_of
from unlost.errors import UsageError
from unlost.recover.choice import Worth
from unlost.recover.plan import Plan, Policy, is_of_first_version, plan_of
from unlost.recover.state.candidates import Candidates
from unlost.recover.state.captures import Captures
from unlost.recover.state.ended import Ended, ended
from unlost.recover.state.file import StateFile
from unlost.recover.state.listings import Listings
from unlost.recover.state.reading import REQUESTS, TRAPPED
from unlost.recover.state.records import Records
from unlost.recover.state.rejections import Rejections
from unlost.recover.state.resources import Resources
from unlost.uri.naming import name_of

Sent = Mapping[tuple[str, Work], int]
"""How many requests went to which archive, by kind."""

_SCOPE = ("urls", "page", "subdomains", "depth", "include", "exclude", "page_requisites")
_FOLLOW_AGAIN = "follow-again"
_OPTIONS_OF = "options-of"  # the version whose defaults a recovery was begun with, unless they are today's


class State:
    """The state of the recovery in a folder, which must exist. Use it as a context manager; only one process can.

    Raises InputError, OSError as StateFile does.
    """

    def __init__(self, folder: Path) -> None:
        self._file = StateFile(folder)
        self.resources = Resources(self._file)
        self.captures = Captures(self._file)
        self.listings = Listings(self._file)
        self.records = Records(self._file)
        self.rejections = Rejections(self._file)
        self.candidates = Candidates(self._file)

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

    def keep_fact(self, name: str, value: str) -> None:
        """Keep something under a name."""
        self._file.begin()
        self._file.connection.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    def requests(self) -> dict[str, dict[str, int]]:
        """Return how many requests were sent over all runs, by archive, then by kind; none if nobody counted."""
        found: dict[str, dict[str, int]] = json.loads(self.fact(REQUESTS) or "{}")
        return found

    def keep_requests(self, before: Mapping[str, Mapping[str, int]], sent: Sent) -> None:
        """Keep how many requests were sent: those of runs before this one, and of this one so far."""
        total = {archive: dict(kinds) for archive, kinds in before.items()}
        for (archive, work), count in sent.items():
            kinds = total.setdefault(archive, {})
            kinds[work.value] = kinds.get(work.value, 0) + count
        text = json.dumps(total, sort_keys=True)
        if text != self.fact(REQUESTS):
            self.keep_fact(REQUESTS, text)

    def trapped(self) -> dict[str, int]:
        """Return how many links were not followed over all runs, by the reason; none if nobody counted."""
        found: dict[str, int] = json.loads(self.fact(TRAPPED) or "{}")
        return found

    def keep_trapped(self, before: Mapping[str, int], trapped: Mapping[str, int]) -> None:
        """Keep how many links were not followed: in runs before this one, and in this one so far."""
        total = dict(before)
        for reason, count in trapped.items():
            total[reason] = total.get(reason, 0) + count
        text = json.dumps(total, sort_keys=True)
        if total and text != self.fact(TRAPPED):
            self.keep_fact(TRAPPED, text)

    def ended(self) -> Iterator[Ended]:
        """Yield what was recovered, and what is missing, in the order in which it was found."""
        return ended(self._file.connection)

    def plan(self) -> Plan | None:
        """Return what is recovered here; None if nobody has said so yet."""
        text = self.fact("plan")
        return None if text is None else plan_of(json.loads(text))

    def check_plan(self, plan: Plan) -> None:
        """Change nothing. Raises UsageError if another site is recovered here, or addresses are read otherwise."""
        before = self.plan()
        if before is not None and not _is_same_site(before, plan):
            raise UsageError(f"the folder has a recovery of {before.url}: give another one by -o")
        if before is not None and before.ignore_case != plan.ignore_case:
            message = "the folder has a recovery with another --ignore-case: give another one by -o, or delete"
            raise UsageError(f"{message} state.sqlite, and what is kept is read anew")

    def keep_plan(self, plan: Plan) -> None:
        """Say what is recovered here. Raises as `check_plan` does.

        The same site may be spelt otherwise than before: its first spelling stays. Anything else may change from one
        run to the next: what was recovered stays, and where other addresses are wanted than before, its links are
        followed again.
        """
        self.check_plan(plan)
        before = self.plan()
        if before is not None and _wants_others(before, plan):
            self.resources.forget_ways()
            self.keep_fact(TRAPPED, "{}")  # all links are followed again
            self.candidates.forget()
            self.follow_again(is_wanted=True)
        if before is not None and (before.policy, before.include_left_out) != (plan.policy, plan.include_left_out):
            self.resources.forget_reasons()
        self._value_rejected(Worth.REJECTED if plan.drop_rejected else Worth.DOUBTFUL)
        if self._is_of_first_version():
            self.keep_fact(_OPTIONS_OF, "0.1.0")
        self.keep_fact("plan", json.dumps(asdict(plan if before is None else replace(plan, url=before.url))))

    def plan_to_inherit(self) -> Plan | None:
        """Return the stored plan if a version with other defaults made the recovery: its options stay in force."""
        return self.plan() if self._is_of_first_version() or self.fact(_OPTIONS_OF) else None

    def _is_of_first_version(self) -> bool:
        return is_of_first_version(json.loads(self.fact("plan") or "{}"))

    def _value_rejected(self, worth: Worth) -> None:
        """Count rejected captures as doubtful, or not at all. Resources for which that matters are queued again."""
        for number in self.rejections.set_worth(worth):
            self.resources.choose(number, self.records.best(number))
            self.resources.requeue("id = ?", number)
            self.follow_again(is_wanted=True)

    @property
    def is_followed_again(self) -> bool:
        """Whether there may be copies whose links were not followed yet."""
        return bool(self.fact(_FOLLOW_AGAIN))

    def follow_again(self, *, is_wanted: bool) -> None:
        """Say whether links of copies that are kept are to be followed; it lasts until it is said otherwise."""
        self.keep_fact(_FOLLOW_AGAIN, "yes" if is_wanted else "")


def _is_same_site(before: Plan, plan: Plan) -> bool:
    """Return whether both begin from one page, in one folder, however it is spelt: a host is its home page."""
    name = partial(name_of, ignore_case=before.ignore_case)
    return name(before.url) == name(plan.url) and name(folder_of(before.url)) == name(folder_of(plan.url))


def _wants_others(before: Plan, plan: Plan) -> bool:
    """Return whether addresses are wanted that were not, or are no longer."""
    return _fetches_listed(before) > _fetches_listed(plan) or any(
        getattr(before, name) != getattr(plan, name) for name in _SCOPE
    )


def _fetches_listed(plan: Plan) -> int:
    """Return how much of what is listed a plan fetches: 0 only what is linked, 1 all but what is left out, 2 all."""
    if not plan.policy.uses_listings:
        return 0
    return 2 if plan.policy is Policy.EXHAUSTIVE or plan.include_left_out else 1
