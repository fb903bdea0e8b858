"""The export formats: one registry for the command, the Python API, the workers and the web pages.

To add a format, write a module with an export target for the files of a site (`ExportTarget`) or with a function of the
type `Exporter`, and add an `ExportFormat` to `EXPORT_FORMATS`. Nothing else names the formats but the
translations of the order form. The modules that write them are imported on first use.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from unlost.errors import UsageError
from unlost.problems import Problems

if TYPE_CHECKING:
    from unlost.export.targets import ExportTarget


class ExternalLinks(StrEnum):
    """What to do with links to other sites."""

    KEEP = "keep"
    """Leave them unchanged."""
    ARCHIVE = "archive"
    """Link to captures in an archive at the date of the page."""
    NONE = "none"
    """Replace page requisites by an empty image, so that nothing is requested; leave links unchanged."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export.

    Attributes:
        rewrite: Whether to rewrite links to files. Otherwise bodies are unchanged and paths equal the URLs.
        windows: Whether file names must be valid on Windows.
        external: What to do with links to other sites.
        hosting: Whether to write redirects for web servers.
        start_page: Language of a start page, which is added to the top folder unless its `index.html` is the start URL;
            None for no start page.
    """

    rewrite: bool = True
    windows: bool = False
    external: ExternalLinks = ExternalLinks.KEEP
    hosting: bool = False
    start_page: str | None = None


class ExportProgress:
    """Receives the progress of an export; override the methods as needed."""

    def on_scanned(self) -> None:
        """Handle a capture that was examined, before anything is written."""

    def on_total(self, files: int) -> None:
        """Handle the number of files or captures that will be written."""

    def on_file(self) -> None:
        """Handle a file or capture that was written."""


class ExportSummary(ABC):
    """The result of an export: what all formats have in common.

    Attributes:
        bytes: Size of what was written.
        problems: Captures that could not be read, and are not in the export.
        start: Path of the start page in the export; None without one.
    """

    bytes: int
    problems: Problems
    start: str | None

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """Return the figures as JSON values, without the path of the output."""

    @abstractmethod
    def messages(self, output: Path) -> list[tuple[str, str]]:
        """Return messages about what was written to `output`: the level and the text of each."""

    @abstractmethod
    def next_step(self, output: Path) -> str:
        """Return what the user can do with `output`, in one line."""


Exporter: TypeAlias = Callable[[Path, Path, ExportOptions, ExportProgress], ExportSummary]
"""Writes the recovery in a folder to a path that does not exist. Raises UsageError, InputError and OSError."""
_API_NAMES = {"windows": "windows_names"}  # parameters of `Recovery.export` that have another name
_SITE_OPTIONS = ("hosting", "external", "windows")  # options of files; `rewrite` leaves archive files as they are


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format of an export.

    Attributes:
        name: Name in the JSON API and in translations.
        suffixes: Suffixes of output paths; empty for a folder.
        media_type: Media type of a download; None if the service does not offer the format.
        exporter: Module and name of the exporter, or of the `ExportTarget` if the format contains files of a site.
        is_site: Whether the format contains the files of a site. Otherwise it contains captures, unmodified.
    """

    name: str
    suffixes: tuple[str, ...]
    media_type: str | None
    exporter: str
    is_site: bool = True

    def unsupported_options(self, options: ExportOptions) -> list[str]:
        """Return the names of the options that are set and do not apply to the format."""
        if self.is_site:
            return []
        default = ExportOptions()
        return [name for name in _SITE_OPTIONS if getattr(options, name) != getattr(default, name)]

    def load(self) -> Callable[..., Any]:
        """Import and return the exporter or the target."""
        module, _, name = self.exporter.partition(":")
        exporter: Callable[..., Any] = getattr(import_module(f"unlost.export.{module}"), name)
        return exporter


EXPORT_FORMATS = (
    ExportFormat("folder", (), None, "targets:FolderTarget"),
    ExportFormat("zip", (".zip",), "application/zip", "packed_targets:ZipTarget"),
    ExportFormat("tar.gz", (".tar.gz", ".tgz"), "application/gzip", "packed_targets:TarTarget"),
    ExportFormat("wacz", (".wacz",), "application/wacz", "wacz:export_wacz", is_site=False),
    ExportFormat("warc", (".warc.gz",), None, "warc:export_warc", is_site=False),
)
DOWNLOAD_FORMATS = {each.name: each.media_type for each in EXPORT_FORMATS if each.media_type is not None}
"""The media types of the formats that the service offers, by name."""
# Other archive formats, which must not become names of folders. Without `.ar`, `.br` and `.cab`, because folders may be
# named after hosts in such domains.
_UNSUPPORTED_EXTENSIONS = (
    ".7z", ".bz2", ".cpio", ".dmg", ".gz", ".iso", ".lz", ".lz4", ".lzma", ".rar", ".tar", ".tbz", ".tbz2", ".txz",
    ".tzst", ".warc", ".xz", ".zst",
)  # fmt: skip


def export_format_of(output: Path) -> ExportFormat:
    """Return the format of an output path: that of its suffix, or else a folder.

    Raises:
        UsageError: The suffix is that of an unsupported archive format.

    >>> export_format_of(Path("site.tgz")).name
    'tar.gz'
    """
    name = output.name.lower()
    for each in EXPORT_FORMATS:
        if each.suffixes and name.endswith(each.suffixes):
            return each
    if name.endswith(_UNSUPPORTED_EXTENSIONS):
        *others, last = [suffix for each in EXPORT_FORMATS for suffix in each.suffixes]
        raise UsageError(f"{output}: expected a folder, or a name that ends in {', '.join(others)} or {last}")
    return EXPORT_FORMATS[0]


def open_target(output: Path) -> "ExportTarget":
    """Return the target for the files of a site. Nothing is created before the target is entered.

    Raises:
        UsageError: The suffix is that of an unsupported format, or of one that contains captures.
    """
    export_format = export_format_of(output)
    if not export_format.is_site:
        raise UsageError(f"{output}: contains captures and not the files of a site: give a folder or a zip")
    target: ExportTarget = export_format.load()(output)
    return target


def export_recovery(
    recovery: Path, output: Path, options: ExportOptions | None = None, progress: ExportProgress | None = None
) -> ExportSummary:
    """Export a recovery, which may be in progress, in the format of the output path.

    Args:
        recovery: The folder of the recovery.
        output: Where to write; nothing may exist there but an empty folder. It appears when it is complete.
        options: How to export.
        progress: Receives the progress.

    Raises:
        UsageError: An option does not apply to the format, or the suffix is that of an unsupported one.
        InputError: `output` exists, or the folder has no recovery, or nothing in it can be read.
        OSError: The output cannot be written.
    """
    options, progress = options or ExportOptions(), progress or ExportProgress()
    export_format = export_format_of(output)
    if unsupported := export_format.unsupported_options(options):
        names = ", ".join(_API_NAMES.get(name, name) for name in unsupported)
        raise UsageError(f"{names}: does not apply to {export_format.name}, which contains captures")
    if not export_format.is_site:
        exporter: Exporter = export_format.load()
        return exporter(recovery, output, options, progress)
    from unlost.export.site import export_site  # noqa: PLC0415  start-up

    with open_target(output) as target:
        return export_site(recovery, target, options, progress)
