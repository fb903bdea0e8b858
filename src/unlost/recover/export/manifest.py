"""The manifest of an exported site: where each file comes from, and which of them are doubtful."""

import json
import tempfile
from collections.abc import Collection
from types import TracebackType
from typing import Self

from unlost.formats.capture import Capture
from unlost.recover.export.contents import Contents
from unlost.recover.export.targets.target import Target

NAME = "unlost-manifest.jsonl"
"""The file, in JSON Lines: an object with `format` and `site`, one for each file, and one for each substitution."""

FORMAT = "unlost-manifest/1"


class Manifest:
    """Collects the files of an export in a temporary file, in their order. Use it as a context manager."""

    def __init__(self) -> None:
        self._lines = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Delete the temporary file."""
        self._lines.close()

    def add(self, path: str, capture: Capture, doubtful: str | None) -> None:
        """Add a file. path: in the export. doubtful: the kind of the verdict against its capture, if there is one."""
        self._write(
            {
                "path": path,
                "url": capture.uri,
                "archive": capture.archive,
                "datetime": capture.datetime,
                "urim": capture.urim,
                "doubtful": doubtful,
            }
        )

    def write_into(self, target: Target, contents: Contents, paths: Collection[str], moment: str) -> None:
        """Write the manifest into an export, unless the site has a file of that name. moment: its date, 14 digits."""
        if NAME in paths:
            return
        for uri, other in contents.substitutes:
            self._write({"url": uri, "substitute": other})
        self._lines.seek(0)
        head = {"format": FORMAT, "site": None if contents.plan is None else contents.plan.url}
        with tempfile.TemporaryFile() as whole:
            whole.write(json.dumps(head).encode() + b"\n")
            while piece := self._lines.read(1 << 20):
                whole.write(piece)
            whole.seek(0)
            target.add(NAME, whole, moment)

    def _write(self, entry: dict[str, object]) -> None:
        self._lines.write(json.dumps(entry).encode() + b"\n")
