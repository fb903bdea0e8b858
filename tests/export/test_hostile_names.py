"""Tests that hostile URLs write nothing outside the target."""

import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.export.sample_recoveries import ROOT, SampleCapture, make_recovery
from unlost.export import MANIFEST_NAME, ExportOptions, export_site, open_target

TAILS = (
    "..%2f..%2f..%2foutside", "%2e%2e/%2e%2e/outside", "..\\..\\outside", "a/..%5c..%5coutside", "/etc/outside",
    "C:/outside",
    "%00", "a%0d%0ab", ".htaccess", ".git/config", "..", "...", "CON", "~root/x", "-rf", "<script>alert(1)</script>",
    "%22onmouseover=%22alert(1)", "javascript:alert(1)", "x" * 4000, "/".join("y" * 100),
    "%E2%80%AEfdp.exe", "%FF%FE", "a.php?/../../outside",
)  # fmt: skip


@pytest.mark.parametrize("rewrite", [True, False])
@pytest.mark.parametrize("windows", [True, False])
@pytest.mark.parametrize("name", ["site", "site.zip", "site.tar.gz"])
def test_hostile_urls_stay_inside_the_target(tmp_path: Path, name: str, rewrite: bool, windows: bool) -> None:
    """Every URL becomes one file in the target, and nothing else is written."""
    links = "".join(f"<a href='/{tail}'>" for tail in TAILS)
    captures = [SampleCapture(ROOT + tail, f"{tail}{links}".encode()) for tail in TAILS]
    folder = make_recovery(tmp_path / "r", {capture.uri: capture for capture in captures}.values())
    place = tmp_path / "out" / "deep" / name
    place.parent.mkdir(parents=True)
    with open_target(place) as target:
        done = export_site(folder, target, ExportOptions(rewrite=rewrite, windows=windows))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out", "r"]
    assert [each.name for each in (tmp_path / "out" / "deep").iterdir()] == [name]
    if name == "site":
        names = [str(file.relative_to(place)) for file in place.rglob("*") if not file.is_dir()]
    elif name == "site.zip":
        with zipfile.ZipFile(place) as packed:
            names = packed.namelist()
    else:
        with tarfile.open(place) as unpacked:
            names = [each.name for each in unpacked if not each.isdir()]
    names.remove(MANIFEST_NAME)
    assert len(names) == done.files > 15
    assert not any(each.startswith("/") or "\\" in each or ".." in each.split("/") for each in names)
