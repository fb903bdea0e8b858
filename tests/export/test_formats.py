"""Tests of the registry of export formats."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

import unlost
from tests.cli.run import unlost as run_unlost
from tests.export.sample_recoveries import ROOT, SampleCapture, make_recovery
from unlost.errors import UsageError
from unlost.export import (
    EXPORT_FORMATS,
    ExportFormat,
    ExportOptions,
    ExportProgress,
    ExportSummary,
    ExternalLinks,
    export_format_of,
    export_recovery,
    formats,
    open_target,
)
from unlost.jobs import folders, write_packages
from unlost.problems import Problems

CAPTURES = [SampleCapture(ROOT, b"<p>home"), SampleCapture(f"{ROOT}a", b"<p>a")]


@dataclass
class UrlListSummary(ExportSummary):
    """The result of an export as a list of URLs."""

    bytes: int = 0
    problems: Problems = field(default_factory=Problems)
    start: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the figures."""
        return {"bytes": self.bytes}

    def messages(self, output: Path) -> list[tuple[str, str]]:
        """Return one message."""
        return [("info", f"{self.bytes} bytes in {output.name}")]

    def next_step(self, output: Path) -> str:
        """Return one step."""
        return f"read {output.name}"


def export_url_list(recovery: Path, output: Path, _: ExportOptions, progress: ExportProgress) -> UrlListSummary:
    """Write the URLs of a recovery, one per line."""
    urls = [resource.url for resource in unlost.Recovery(recovery).resources()]
    progress.on_total(len(urls))
    output.write_text("".join(f"{url}\n" for url in urls))
    return UrlListSummary(output.stat().st_size)


@pytest.fixture
def url_list_format(monkeypatch: pytest.MonkeyPatch) -> ExportFormat:
    """Add a format to the registry: a module, and a line in `EXPORT_FORMATS`."""
    module = ModuleType("unlost.export.url_list")
    module.export_url_list = export_url_list  # type: ignore[attr-defined]
    added = ExportFormat("urls", (".urls",), "text/uri-list", "url_list:export_url_list", is_site=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(formats, "EXPORT_FORMATS", (*EXPORT_FORMATS, added))
    monkeypatch.setattr(folders, "DOWNLOAD_FORMATS", {"urls": "text/uri-list"})
    return added


@pytest.mark.usefixtures("url_list_format")
def test_command_api_and_worker_write_a_format_that_was_added(tmp_path: Path) -> None:
    """One module and one line are enough for all three."""
    recovery = make_recovery(tmp_path / "r", CAPTURES)
    content = f"{ROOT}\n{ROOT}a\n"

    done = run_unlost("export", str(recovery), "-o", str(tmp_path / "command.urls"), "--json")
    assert json.loads(done.stdout) == {"output": str(tmp_path / "command.urls"), "bytes": len(content)}
    summary = unlost.Recovery(recovery).export(tmp_path / "api.urls")
    (package,) = write_packages(recovery, windows=True, language="en", check=lambda: None)

    assert summary.bytes == package.size == len(content)
    for file in (tmp_path / "command.urls", tmp_path / "api.urls", recovery / "packages" / "site.urls"):
        assert file.read_text() == content


@pytest.mark.usefixtures("url_list_format")
def test_message_names_a_format_that_was_added(tmp_path: Path) -> None:
    """In the error for an unsupported extension."""
    with pytest.raises(UsageError, match=r"\.warc\.gz or \.urls$"):
        export_format_of(tmp_path / "site.rar")


@pytest.mark.parametrize("name", ["site.wacz", "site.warc.gz"])
@pytest.mark.parametrize(
    "options",
    [ExportOptions(hosting=True), ExportOptions(windows=True), ExportOptions(external=ExternalLinks.NONE)],
    ids=["hosting", "windows", "external"],
)
def test_options_of_sites_are_refused_for_archive_files(tmp_path: Path, name: str, options: ExportOptions) -> None:
    """Nothing is written."""
    recovery = make_recovery(tmp_path / "r", CAPTURES)
    with pytest.raises(UsageError, match="contains captures"):
        export_recovery(recovery, tmp_path / name, options)
    assert not (tmp_path / name).exists()


def test_archive_files_are_no_targets_for_files(tmp_path: Path) -> None:
    """`open_target` refuses them."""
    with pytest.raises(UsageError, match="contains captures and not the files of a site"):
        open_target(tmp_path / "site.wacz")


def test_every_exporter_can_be_loaded() -> None:
    """Each entry of the registry names an existing function or class."""
    assert all(callable(each.load()) for each in EXPORT_FORMATS)
