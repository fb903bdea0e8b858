"""MemGator's `archives.json`, read as it is: the list of archives that another aggregator asks.

It is a list of objects with `id`, `name`, `timemap`, `timegate`, `probability` (of a hit) and `ignore` (not asked).
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unlost.archives.archive import Figure, Kind
from unlost.archives.registry.fields import Fields, described, entry, shown
from unlost.errors import InputError

_FIELDS = ("id", "name", "timemap", "timegate", "probability", "ignore")


def read_memgator(
    entries: object, file: Path, known: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what each entry says, as fields of an `Archive`, and notes on what was passed over. Raises InputError.

    known: entries of our own by id. Where one is at the same host, it says the rest: kind, limits, types. The list has
        called archives by other ids over the years, so the host decides.
    """
    if not isinstance(entries, list):
        raise InputError(f"{file}: expected a list of archives, as MemGator has it, found {described(entries)}")
    found = []
    unknown: dict[str, str] = {}
    for number, each in enumerate(entries, 1):
        fields = entry(each, number, file)
        found.append(_read(fields, file, known))
        unknown |= {name: fields.place for name in fields.names() if name not in (*_FIELDS, *unknown)}
    return found, [f"{place}: {shown(name)}: no field of MemGator's: passed over" for name, place in unknown.items()]


def _read(fields: Fields, file: Path, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    name = fields.id()
    # Only the name is not a must: MemGator prints it and does nothing else with it.
    read: dict[str, Any] = {"id": name, "name": fields.text("name") if "name" in fields else name}
    # One without a TimeMap is asked by its TimeGate.
    for each in ("timemap", "timegate"):
        if each in fields or (each == "timemap" and "timegate" not in fields):
            read[each] = fields.address(each)
    if "probability" in fields and (share := fields.number("probability", 0, 1)):
        read["hit_rate"] = Figure(share, f"`probability` in {file.name}")
    read["enabled"] = not ("ignore" in fields and fields.flag("ignore"))
    return {"kind": Kind.MEMENTO, **_ours(read, known), **read}


def _ours(read: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return our own entry of the archive at the same host; nothing if there is none, or more than one."""
    name = "timemap" if "timemap" in read else "timegate"
    host = urlsplit(read[name]).netloc.lower()
    found = [each for each in known.values() if urlsplit(each.get(name, "")).netloc.lower() == host]
    return found[0] if len(found) == 1 else {}
