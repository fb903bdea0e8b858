"""`unlost export` of a site that `unlost recover` recovered."""

import json
import os
import signal
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.cli.run import UNLOST, unlost
from tests.export.sample_recoveries import ROOT as OTHER_ROOT
from tests.export.sample_recoveries import SampleCapture, make_recovery
from tests.recovery.command import Command
from tests.recovery.sample_site import PAGES, sample_site, serve_site
from tests.recovery.site import ROOT, Site
from tests.waiting import wait_until
from unlost.export import MANIFEST_NAME

SITE: Site = sample_site()
FILES = {"index.html", *(f"{number}.{ending}" for number in range(PAGES) for ending in ("html", "gif"))}


@pytest.fixture(scope="module")
def recovery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recover the site once."""
    place = tmp_path_factory.mktemp("village")
    with serve_site(SITE) as found:
        command = Command(found.registry(place), place / "lost.recovery", place / "home")
        assert command.run(ROOT).code == 0
    return command.folder


def test_folder_has_all_files_and_relative_links(recovery: Path, tmp_path: Path) -> None:
    """The summary has the start page and the number of dangling links."""
    done = unlost("export", str(recovery), "-o", str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    files = {str(file.relative_to(tmp_path / "site")) for file in (tmp_path / "site").rglob("*") if file.is_file()}
    assert files == FILES | {MANIFEST_NAME}
    front = (tmp_path / "site" / "index.html").read_text()
    assert '<a href="3.html">' in front
    assert '<a href="nowhere.html">' in front, "where its file would be"
    assert (tmp_path / "site" / "3.gif").read_bytes() == SITE.resources["lost.example/3.gif"].held[0].body
    stderr = done.stderr.decode()
    assert f"{len(FILES)} files" in stderr
    assert "1 link to pages and parts of the site that were not recovered" in stderr
    assert "begin with index.html" in stderr


def test_zip_and_tar_have_all_files(recovery: Path, tmp_path: Path) -> None:
    """And the manifest."""
    for name in ("site.zip", "site.tar.gz"):
        assert unlost("export", str(recovery), "-o", str(tmp_path / name)).returncode == 0
    with zipfile.ZipFile(tmp_path / "site.zip") as packed:
        assert set(packed.namelist()) == FILES | {MANIFEST_NAME}
    with tarfile.open(tmp_path / "site.tar.gz") as unpacked:
        assert {each.name for each in unpacked if each.isfile()} == FILES | {MANIFEST_NAME}


@pytest.mark.parametrize("name", ["site.wacz", "site.warc.gz"])
def test_archive_files_have_all_captures(recovery: Path, tmp_path: Path, name: str) -> None:
    """Unchanged."""
    done = unlost("export", str(recovery), "-o", str(tmp_path / name), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["copies"] == len(FILES)
    assert result["bytes"] == (tmp_path / name).stat().st_size


def test_json_has_all_counts(recovery: Path, tmp_path: Path) -> None:
    """And the start page."""
    done = unlost("export", str(recovery), "-o", str(tmp_path / "site"), "--json")
    result = json.loads(done.stdout)
    sizes = sum(file.stat().st_size for file in (tmp_path / "site").iterdir() if file.name != MANIFEST_NAME)
    assert result == {
        "output": str(tmp_path / "site"),
        "files": len(FILES),
        "bytes": sizes,
        "redirects": 0,
        "start": "index.html",
        "links": {"rewritten": 2 * PAGES + 1, "left": 0, "file": 2 * PAGES, "missing": 1, "outside": 0},
        "renamed": {},
        "changed": {},
        "hosting": [],
        "problems": {},
    }


def test_without_rewriting_bodies_are_unchanged(recovery: Path, tmp_path: Path) -> None:
    """Every file is the body of the capture."""
    assert unlost("export", str(recovery), "-o", str(tmp_path / "site"), "--no-rewrite").returncode == 0
    for name, resource in SITE.resources.items():
        if resource.held:
            path = f"{name}/index.html" if "/" not in name else name
            assert (tmp_path / "site" / path).read_bytes() == resource.held[0].body


def test_hosting_files_are_listed(recovery: Path, tmp_path: Path) -> None:
    """They are written next to the files of the site."""
    done = unlost("export", str(recovery), "-o", str(tmp_path / "site"), "--as", "hosting", "--json")
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)["hosting"]
    assert {".htaccess", "_redirects"} <= set(names)
    assert all((tmp_path / "site" / name).is_file() for name in names)


def test_windows_names_are_valid_on_windows(tmp_path: Path) -> None:
    """The changed names are counted by reason."""
    captures = [SampleCapture(f"{OTHER_ROOT}{tail}", b"x") for tail in ("aux.html", "a.php?x=1", "B.html", "b.html")]
    folder = make_recovery(tmp_path / "r", captures)
    done = unlost("export", str(folder), "-o", str(tmp_path / "site"), "--windows-names", "--json")
    names = {file.name for file in (tmp_path / "site").iterdir()}
    assert {"aux_.html", "a.php@x=1.html", "B.html"} < names
    assert json.loads(done.stdout)["renamed"] == {"ending": 1, "letter-case": 1, "letters": 1, "query": 1}


def test_truncated_warc_exports_the_rest(tmp_path: Path) -> None:
    """The exit code is 5."""
    folder = make_recovery(tmp_path / "r", [SampleCapture(f"{OTHER_ROOT}{number}", b"x" * 999) for number in range(3)])
    (warc,) = (folder / "warc").iterdir()
    warc.write_bytes(warc.read_bytes()[: warc.stat().st_size // 2])
    done = unlost("export", str(folder), "-o", str(tmp_path / "site"))
    assert done.returncode == 5
    assert b"a file or copy that cannot be read, first: unlost-00001.warc.gz" in done.stderr
    assert (tmp_path / "site" / "0.html").is_file()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-o", "site.rar"], 2, "expected a folder, or a name that ends in .zip"),
        (["-o", "site.warc"], 2, "expected a folder, or a name that ends in .zip"),
        (["-o", "site.wacz", "--as", "hosting"], 2, "--as hosting is for files, and a WACZ holds the captures"),
        (["-o", "site.warc.gz", "--external", "none"], 2, "--external is for files, and a WARC holds the captures"),
        (["-o", "site", "--no-rewrite", "--external", "none"], 2, "leave out --external"),
        (["-o", "there"], 3, "there"),
        ([], 2, "Missing option '-o' / '--output'"),
    ],
)
def test_invalid_options_are_rejected(
    recovery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, message: str
) -> None:
    """The message says what was expected, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    done = unlost("export", str(recovery), *options)
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert [str(each.relative_to(tmp_path)) for each in sorted(tmp_path.rglob("*"))] == ["there", "there/file"]


@pytest.mark.parametrize("name", ["site", "site.zip"])
def test_interruption_leaves_no_files(tmp_path: Path, name: str) -> None:
    """Ctrl-C ends it with 130 and one line."""
    first = f"{OTHER_ROOT}0.bin"
    captures = [SampleCapture(first, bytes(8 << 20), "image/png")]
    captures += [
        SampleCapture(f"{OTHER_ROOT}{number}.bin", mime="image/png", same_as=first) for number in range(1, 400)
    ]
    folder, out = make_recovery(tmp_path / "r", captures), tmp_path / "out"
    out.mkdir()
    with subprocess.Popen(
        [UNLOST, "export", str(folder), "-o", str(out / name)], stderr=subprocess.PIPE, env={**os.environ}
    ) as process:
        wait_until(lambda: any(each.stat().st_size for each in out.rglob("*") if each.is_file()))
        process.send_signal(signal.SIGINT)
        stderr = process.communicate(timeout=60)[1]
    assert (process.returncode, stderr.strip()) == (130, b"unlost: interrupted"), stderr
    assert list(out.iterdir()) == []


def test_recovery_without_readable_captures_is_rejected(tmp_path: Path) -> None:
    """No empty site is written, in any format."""
    folder = make_recovery(tmp_path / "r", [SampleCapture(OTHER_ROOT, b"x")])
    (warc,) = (folder / "warc").iterdir()
    warc.unlink()
    for name in ("site", "site.zip", "site.wacz"):
        done = unlost("export", str(folder), "-o", str(tmp_path / name), "--json")
        assert (done.returncode, done.stdout) == (3, b"")
        assert b"nothing can be exported, first: " in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["r"]


def test_folder_without_a_recovery_is_rejected(tmp_path: Path) -> None:
    """Also a recovery without captures; nothing is written."""
    (tmp_path / "none").mkdir()
    make_recovery(tmp_path / "new", [])
    messages = {
        "nowhere": "cannot be read: No such file or directory: give the folder of a recovery",
        "none": "not the folder of a recovery",
        "new": "nothing was recovered so far",
    }
    for folder, message in messages.items():
        for to in ("site", "site.wacz"):
            done = unlost("export", str(tmp_path / folder), "-o", str(tmp_path / to))
            assert (done.returncode, message in done.stderr.decode()) == (3, True), done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "none"]
