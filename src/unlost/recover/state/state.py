"""All that a recovery knows."""

import json
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.errors import UsageError
from unlost.recover.plan import Plan, Policy
from unlost.recover.state.captures import Captures
from unlost.recover.state.file import StateFile
from unlost.recover.state.listings import Listings
from unlost.recover.state.records import Records
from unlost.recover.state.resources import Resources


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

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Keep what was changed, unless something went wrong meanwhile, and close the file."""
        try:
            if kind is None:
                self.commit()
        finally:
            self._file.close()

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

    def plan(self) -> Plan | None:
        """Return what is recovered here; None if nobody has said so yet."""
        text = self.fact("plan")
        if text is None:
            return None
        values = json.loads(text)
        values |= {name: tuple(values[name]) for name in ("urls", "include", "exclude")}
        return Plan(**values | {"policy": Policy(values["policy"])})

    def keep_plan(self, plan: Plan) -> None:
        """Say what is recovered here. Raises UsageError if that is another site than before.

        Anything else may change from one run to the next: what was recovered stays, and what is wanted now is added.
        """
        before = self.plan()
        if before is not None and before.url != plan.url:
            raise UsageError(f"the folder has a recovery of {before.url}: give another one by -o")
        self.keep_fact("plan", json.dumps(asdict(plan)))
