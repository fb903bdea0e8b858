"""Numbers of hosts that somebody else knows: ranks, links from elsewhere."""

from collections.abc import Collection
from pathlib import Path

from unlost.errors import InputError
from unlost.formats.problems import Problem, Problems
from unlost.formats.textfile import read_lines

_MAX_LINE_LENGTH = 400  # of a line


def read_host_numbers(file: Path, hosts: Collection[str], problems: Problems) -> dict[str, float]:
    """Return the numbers of those hosts that a file knows, as it has them or their domains.

    file: a line for each, a host and a number in either order, with a comma, a tab or spaces between them, such as
        `1,example.com`; more columns are passed over, and so are lines that begin with `#` and a first line of names.
    hosts: whose numbers are wanted; a host without a line has the number of the longest domain that it belongs to.
    Other lines are counted in `problems`. Raises InputError, OSError.
    """
    wanted = {parent for host in hosts for parent in _parent_domains(host)}
    found: dict[str, float] = {}
    count = 0
    for line in read_lines(file, problems):
        text = line.text[:_MAX_LINE_LENGTH].decode("utf-8", "replace").removeprefix("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        count += 1
        pair = _parse_host_number(text)
        if pair is None:
            if count > 1:
                problems.add(Problem("no-number", str(file), line.number, line.offset, "expected a host and a number"))
        elif pair[0] in wanted:
            found.setdefault(*pair)
    if not count:
        raise InputError(f"{file}: nothing in it: expected a host and a number in each line")
    return {
        host: found[parent] for host in hosts for parent in reversed(list(_parent_domains(host))) if parent in found
    }


def _parse_host_number(text: str) -> tuple[str, float] | None:
    fields = text.replace(",", " ").replace("\t", " ").split()[:2]
    for host, number in (fields, fields[::-1]) if len(fields) > 1 else ():
        try:
            value = float(number)
        except ValueError:
            continue
        # Not `nan`, nor what is more than anybody counts.
        if 0 <= value < 1e15 and not _is_number(host):
            return host.lower().rstrip("."), value
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parent_domains(host: str) -> list[str]:
    """Return a host and the domains that it belongs to, longest first."""
    labels = host.lower().rstrip(".").split(".")
    return [".".join(labels[at:]) for at in range(len(labels))][: max(1, len(labels) - 1)]
