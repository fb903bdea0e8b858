"""The packages that owners download: the site as zip and tar.gz, and as WACZ for replay."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from unlost.errors import InputError, SpaceError
from unlost.export.site import ExportOptions, ExportProgress, export_site
from unlost.export.targets import open_target
from unlost.export.wacz import write_wacz
from unlost.jobs.models import PACKAGE_FORMATS, JobPackage

PACKAGE_MEDIA_TYPES = {"zip": "application/zip", "tar.gz": "application/gzip", "wacz": "application/wacz"}

_FOLDER = "packages"


def write_packages(
    recovery: Path, *, windows: bool, language: str, check: Callable[[], None]
) -> tuple[JobPackage, ...]:
    """Write all packages of a recovery into its folder `packages`, replacing earlier ones.

    Args:
        recovery: Folder of the recovery.
        windows: Use file names that are valid on Windows.
        language: Language of the start page, if one is added.
        check: Called for each file; may raise SpaceError to abort.

    Returns:
        The packages; empty if nothing was recovered.

    Raises:
        OSError: The disk is full.
        SpaceError: Raised by `check`. No package is left then.
    """
    folder = recovery / _FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    packages = []
    for form in PACKAGE_FORMATS:
        file = folder / f"site.{form}"
        try:
            start = _write(recovery, file, check, windows=windows, language=language)
        except SpaceError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        except InputError:  # nothing was recovered
            continue
        size = file.stat().st_size
        packages.append(JobPackage(form, f"{recovery.name}/{_FOLDER}/{file.name}", size, _digest(file), start))
    return tuple(packages)


class _CheckingProgress(ExportProgress):
    """Calls `check` for each file."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def on_file(self) -> None:
        self._check()


def _write(recovery: Path, file: Path, check: Callable[[], None], *, windows: bool, language: str) -> str:
    """Write one package. Returns the path of its start page, or an empty string for a WACZ."""
    if file.name.endswith(".wacz"):
        write_wacz(recovery, file, on_progress=lambda *_: check())
        return ""
    with open_target(file) as target:
        return (
            export_site(
                recovery, target, ExportOptions(windows=windows, start_page=language), _CheckingProgress(check)
            ).start
            or ""
        )


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
