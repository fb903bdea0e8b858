"""WACZ files with given members."""

import zipfile
from pathlib import Path


def wacz(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """Write a WACZ with these members."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("datapackage.json", "{}")
        for name, data in members.items():
            archive.writestr(name, data)
    return path
