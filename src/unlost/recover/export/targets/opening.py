"""Which target a path stands for: its ending tells."""

from pathlib import Path

from unlost.errors import UsageError
from unlost.recover.export.targets.target import ExportTarget

# Not `.ar`, `.br` or `.cab`, which names of hosts end in, and a folder may well be called after its host.
_UNSUPPORTED_EXTENSIONS = (
    ".7z", ".bz2", ".cpio", ".dmg", ".gz", ".iso", ".lz", ".lz4", ".lzma", ".rar", ".tar", ".tbz", ".tbz2", ".txz",
    ".tzst", ".wacz", ".warc", ".xz", ".zst",
)  # fmt: skip


def open_target(path: Path) -> ExportTarget:
    """Return the target for a path: a zip file, a gzipped tar file (`.tar.gz`, `.tgz`), else a folder.

    Nothing is made before it is entered. Raises UsageError for the ending of a packed file that is not written here, so
    that nobody finds a folder called `site.rar`.
    """
    name = path.name.lower()
    if name.endswith(".zip"):
        from unlost.recover.export.targets.zip_target import ZipTarget  # noqa: PLC0415  start-up

        return ZipTarget(path)
    if name.endswith((".tar.gz", ".tgz")):
        from unlost.recover.export.targets.tar_target import TarTarget  # noqa: PLC0415  start-up

        return TarTarget(path)
    if name.endswith(_UNSUPPORTED_EXTENSIONS):
        raise UsageError(f"{path}: expected a folder, or a name that ends in .zip, .tar.gz, .tgz, .wacz or .warc.gz")
    from unlost.recover.export.targets.folder_target import FolderTarget  # noqa: PLC0415  start-up

    return FolderTarget(path)
