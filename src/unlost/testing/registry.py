"""Writes the file that names the archives of a test, as `--archives` takes it."""

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

from unlost.archives.archive import Archive, ArchiveKind, RateLimit


def write_registry(path: str | PathLike[str], *archives: Archive) -> Path:
    """Write a registry of these archives and no others, without any limits but their own; return its path."""
    file = Path(path)
    file.write_text("".join(map(_format_entry, archives)))
    return file


def _format_entry(archive: Archive) -> str:
    fields = {
        "id": archive.id,
        "name": archive.name,
        "kind": str(archive.kind),
        "timemap": archive.timemap,
        "timegate": archive.timegate,
        "cdx": archive.cdx,
        "replay": archive.replay,
        "folder": archive.folder,
    }
    lines = ["[[archive]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items() if value is not None)]
    if archive.migrated:
        lines.append(f"migrated = {json.dumps(archive.migrated)}")
    lister = archive.lister
    if lister is not None:
        rows = f"{{ value = {int(lister.rows_per_page.value)}, source = {json.dumps(lister.rows_per_page.source)} }}"
        lines.append(f"lister = {{ matches = {json.dumps(lister.matches)}, rows_per_page = {rows} }}")
    if archive.kind is not ArchiveKind.FILES:
        lines.append(f"limits = [{_format_limits(archive.limits, is_quota=False)}]")
        lines.append(f"quotas = [{_format_limits(archive.quotas, is_quota=True)}]")
    return "\n".join(lines) + "\n\n"


def _format_limits(limits: Iterable[RateLimit], *, is_quota: bool) -> str:
    return ", ".join(
        f"{{ requests = {limit.requests}, "
        + ("" if is_quota else f"seconds = {limit.seconds}, ")
        + f"works = {json.dumps([str(work) for work in limit.works])}, source = {json.dumps(limit.source)} }}"
        for limit in limits
    )
