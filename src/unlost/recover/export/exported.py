"""What an export came to."""

from collections import Counter
from dataclasses import dataclass, field

from unlost.formats.problems import Problems


@dataclass(slots=True)
class ExportResult:
    """Numbers about an export.

    files, bytes: what was written of the site itself. redirects: resources that lead to another, and have no file.
    links: how many were `rewritten`, wherever they stand, and `left` since they are too long or too many; and of the
        addresses of each page how many lead to a `file`, to something `missing`, or `outside`.
    renamed: how many files are not called what their addresses say, by the reason; one may have several.
    changed: what else was done to how many files: a `charset` declared, `unpacked`, `transcoded` …
    problems: copies that could not be read; they have no file.
    start: the path of the page to begin from; None if it was not recovered, and no start page was added.
    hosting: the names of the files for servers.
    """

    files: int = 0
    bytes: int = 0
    redirects: int = 0
    links: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, int] = field(default_factory=dict)
    changed: Counter[str] = field(default_factory=Counter)
    problems: Problems = field(default_factory=Problems)
    start: str | None = None
    hosting: list[str] = field(default_factory=list)
