"""Reads export targets with other readers: the file system, `zipfile` and `tarfile`."""

import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

KINDS = ("site", "site.zip", "site.tar.gz")
"""Names of targets, one of each kind."""

Files = dict[str, tuple[bytes, str]]
"""Content and 14-digit date of files by path."""


def read_target(path: Path) -> Files:
    """Return the files of a target; each must be a regular file that everyone may read."""
    if path.suffix == ".zip":
        return _of_zip(path)
    return _of_tar(path) if path.suffix == ".gz" else _of_folder(path)


def _of_zip(path: Path) -> Files:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.external_attr >> 16 for info in archive.infolist()} <= {0o100644}
        return {info.filename: (archive.read(info), _digits(info.date_time)) for info in archive.infolist()}


def _of_tar(path: Path) -> Files:
    found = {}
    with tarfile.open(path, "r:gz") as archive:
        for info in archive:
            assert (info.isreg(), info.mode, info.uid, info.gid, info.uname, info.gname) == (True, 0o644, 0, 0, "", "")
            body = archive.extractfile(info)
            assert body is not None
            found[info.name] = body.read(), _of_epoch(info.mtime)
    return found


def _of_folder(path: Path) -> Files:
    files = [file for file in path.rglob("*") if not file.is_dir()]
    assert not any(file.is_symlink() for file in files)
    return {str(file.relative_to(path)): (file.read_bytes(), _of_epoch(file.stat().st_mtime)) for file in files}


def _digits(date: tuple[int, ...]) -> str:
    return "".join(f"{part:02d}" for part in date)


def _of_epoch(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d%H%M%S")
