"""MemGator's `archives.json`, read as it is: the list of archives that another aggregator asks.

It is a list of objects with `id`, `name`, `timemap`, `timegate`, `probability` (of a hit) and `ignore` (not asked).
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unlost.archives.archive import SourcedNumber, ArchiveKind
from unlost.archives.registry.fields import FieldReader, describe_value, entry_fields, truncate_text
from unlost.errors import InputError

_MEMGATOR_FIELDS = ("id", "name", "timemap", "timegate", "probability", "ignore")


def parse_memgator(
    entries: object, file: Path, known: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what each entry says, as fields of an `Archive`, and notes on what was passed over. Raises InputError.

    known: entries of our own by id. Where one is at the same host, it says the rest: kind, limits, types. The list has
        called archives by other ids over the years, so the host decides.
    """
    if not isinstance(entries, list):
        raise InputError(f"{file}: expected a list of archives, as MemGator has it, found {describe_value(entries)}")
    found = []
    unknown: dict[str, str] = {}
    for number, each in enumerate(entries, 1):
        fields = entry_fields(each, number, file)
        found.append(_parse_memgator_entry(fields, file, known))
        unknown |= {name: fields.place for name in fields.names() if name not in (*_MEMGATOR_FIELDS, *unknown)}
    return found, [
        f"{place}: {truncate_text(name)}: no field of MemGator's: passed over" for name, place in unknown.items()
    ]


def _parse_memgator_entry(fields: FieldReader, file: Path, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    name = fields.id()
    # Only the name is not a must: MemGator prints it and does nothing else with it.
    read: dict[str, Any] = {"id": name, "name": fields.text("name") if "name" in fields else name}
    # One without a TimeMap is asked by its TimeGate.
    for each in ("timemap", "timegate"):
        if each in fields or (each == "timemap" and "timegate" not in fields):
            read[each] = fields.http_url(each)
    if "probability" in fields and (share := fields.number("probability", 0, 1)):
        read["hit_rate"] = SourcedNumber(share, f"`probability` in {file.name}")
    read["enabled"] = not ("ignore" in fields and fields.flag("ignore"))
    return {"kind": ArchiveKind.MEMENTO, **_matching_entry(read, known), **read}


def _matching_entry(read: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return our own entry of the archive at the same host; nothing if there is none, or more than one."""
    name = "timemap" if "timemap" in read else "timegate"
    host = urlsplit(read[name]).netloc.lower()
    found = [each for each in known.values() if urlsplit(each.get(name, "")).netloc.lower() == host]
    return found[0] if len(found) == 1 else {}
