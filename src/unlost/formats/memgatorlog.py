"""Logs of MemGator: what its archives answered, and which pages it was asked for.

Lines of several requests mix in them, so it cannot be told which answer belongs to which page.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from unlost.formats.problems import Problems
from unlost.formats.textfile import TextSource, read_source_lines

MemGatorEventKind = Literal["asked", "hit", "miss", "error", "sleep"]
"""A page was asked for; an archive has it, has it not, failed, or is left alone for a while."""

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class MemGatorEvent:
    """One line that tells something. name: the page that was asked for, or the archive's id."""

    event: MemGatorEventKind
    name: str


_REQUEST_LINE = re.compile(rb"Aggregating Mementos for (\S+)")
_RESPONSE_LINE = re.compile(
    rb"(\S+) => (?:(Success): (\d{1,18}) mementos|Response error: (\d{3})|(Network|Request|Response read) error|"
    rb"(Dormant) after)"
)
_LINE_PREFIXES = (b"INFO: ", b"ERROR: ", b"BENCHMARK: ")


def is_memgator_log(line: bytes) -> bool:
    """Return whether a line is one of such a log.

    >>> is_memgator_log(b"INFO: 2019/01/16 10:00:00.000001 ia => Success: 3 mementos")
    True
    """
    return line.startswith(_LINE_PREFIXES)


def read_memgator_log(file: TextSource, problems: Problems, name: str | None = None) -> Iterator[MemGatorEvent]:
    r"""Yield what a log tells, in its order and in bounded memory; lines that tell nothing of this are passed over.

    A list without mementos is a miss, and so is 404; any other status is an error. file, name, problems and what is
    raised: as `unlost.formats.textfile.lines_of` has them.

    >>> from io import BytesIO
    >>> log = b"INFO: x Aggregating Mementos for http://a.com/\nINFO: x ia => Response error: 404 Not Found\n"
    >>> [(each.event, each.name) for each in read_memgator_log(BytesIO(log), Problems(), "x")]
    [('asked', 'http://a.com/'), ('miss', 'ia')]
    """
    for line in read_source_lines(file, problems, name):
        asked = _REQUEST_LINE.search(line.text)
        if asked:
            yield MemGatorEvent("asked", asked[1].decode("utf-8", "backslashreplace"))
            continue
        answer = _RESPONSE_LINE.search(line.text)
        if answer and not line.text.startswith(b"BENCHMARK: "):
            yield MemGatorEvent(_event_kind(answer), answer[1].decode("utf-8", "backslashreplace"))


def _event_kind(answer: re.Match[bytes]) -> MemGatorEventKind:
    if answer[6]:
        return "sleep"
    if answer[2]:
        return "hit" if int(answer[3]) else "miss"
    return "miss" if answer[4] and int(answer[4]) == _NOT_FOUND else "error"
