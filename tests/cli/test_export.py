"""Tests of `unlost export` as its users run it, on a site that `unlost recover` brought back."""

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
from tests.recover.command import Command
from tests.recover.sample_site import PAGES, sample_site, serve_site
from tests.recover.site import ROOT, Site
from tests.waiting import wait_until
from unlost.export import MANIFEST_NAME

SITE: Site = sample_site()
FILES = {"index.html", *(f"{number}.{ending}" for number in range(PAGES) for ending in ("html", "gif"))}


@pytest.fixture(scope="module")
def recovery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recover the sample site once."""
    place = tmp_path_factory.mktemp("sample")
    with serve_site(SITE) as found:
        command = Command(found.registry(place), place / "lost.recovery", place / "home")
        assert command.run(ROOT).code == 0
    return command.folder


def test_a_folder(recovery: Path, tmp_path: Path) -> None:
    """All pages and images are there, links lead from file to file, and the command says where to begin."""
    done = unlost("export", str(recovery), "--to", str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    files = {str(file.relative_to(tmp_path / "site")) for file in (tmp_path / "site").rglob("*") if file.is_file()}
    assert files == FILES | {MANIFEST_NAME}
    front = (tmp_path / "site" / "index.html").read_text()
    assert '<a href="3.html">' in front
    assert '<a href="nowhere.html">' in front, "where its file would be"
    assert (tmp_path / "site" / "3.gif").read_bytes() == SITE.resources["lost.example/3.gif"].held[0].body
    said = done.stderr.decode()
    assert f"{len(FILES)} files" in said
    assert "1 link to pages and parts of the site that were not recovered" in said
    assert "begin with index.html" in said


def test_packed(recovery: Path, tmp_path: Path) -> None:
    """A zip and a tar file hold the same."""
    for name in ("site.zip", "site.tar.gz"):
        assert unlost("export", str(recovery), "--to", str(tmp_path / name)).returncode == 0
    with zipfile.ZipFile(tmp_path / "site.zip") as packed:
        assert set(packed.namelist()) == FILES | {MANIFEST_NAME}
    with tarfile.open(tmp_path / "site.tar.gz") as unpacked:
        assert {each.name for each in unpacked if each.isfile()} == FILES | {MANIFEST_NAME}


@pytest.mark.parametrize("name", ["site.wacz", "site.warc.gz"])
def test_archive_files(recovery: Path, tmp_path: Path, name: str) -> None:
    """What was chosen goes into an archive file as it is."""
    done = unlost("export", str(recovery), "--to", str(tmp_path / name), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["copies"] == len(FILES)
    assert told["bytes"] == (tmp_path / name).stat().st_size


def test_json(recovery: Path, tmp_path: Path) -> None:
    """The numbers for programs."""
    done = unlost("export", str(recovery), "--to", str(tmp_path / "site"), "--json")
    told = json.loads(done.stdout)
    sizes = sum(file.stat().st_size for file in (tmp_path / "site").iterdir() if file.name != MANIFEST_NAME)
    assert told == {
        "to": str(tmp_path / "site"),
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


def test_a_mirror(recovery: Path, tmp_path: Path) -> None:
    """Without rewriting, every file holds what the archive had."""
    assert unlost("export", str(recovery), "--to", str(tmp_path / "site"), "--no-rewrite").returncode == 0
    for name, resource in SITE.resources.items():
        if resource.held:
            path = f"{name}/index.html" if "/" not in name else name
            assert (tmp_path / "site" / path).read_bytes() == resource.held[0].body


def test_for_hosting(recovery: Path, tmp_path: Path) -> None:
    """Files for servers are beside those of the site, and told."""
    done = unlost("export", str(recovery), "--to", str(tmp_path / "site"), "--as", "hosting", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["hosting"]
    assert {".htaccess", "_redirects"} <= set(told)
    assert all((tmp_path / "site" / name).is_file() for name in told)


def test_names_for_windows(tmp_path: Path) -> None:
    """With the option, no name is one that Windows refuses; how many were changed, and why, is told."""
    copies = [SampleCapture(f"{OTHER_ROOT}{tail}", b"x") for tail in ("aux.html", "a.php?x=1", "B.html", "b.html")]
    folder = make_recovery(tmp_path / "r", copies)
    done = unlost("export", str(folder), "--to", str(tmp_path / "site"), "--windows-names", "--json")
    names = {file.name for file in (tmp_path / "site").iterdir()}
    assert {"aux_.html", "a.php@x=1.html", "B.html"} < names
    assert json.loads(done.stdout)["renamed"] == {"ending": 1, "letter-case": 1, "letters": 1, "query": 1}


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """The rest is exported, and the exit code is 5."""
    folder = make_recovery(tmp_path / "r", [SampleCapture(f"{OTHER_ROOT}{number}", b"x" * 999) for number in range(3)])
    (warc,) = (folder / "warc").iterdir()
    warc.write_bytes(warc.read_bytes()[: warc.stat().st_size // 2])
    done = unlost("export", str(folder), "--to", str(tmp_path / "site"))
    assert done.returncode == 5
    assert b"a file or copy that cannot be read, first: unlost-00001.warc.gz" in done.stderr
    assert (tmp_path / "site" / "0.html").is_file()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--to", "site.rar"], 2, "expected a folder, or a name that ends in .zip"),
        (["--to", "site.warc"], 2, "expected a folder, or a name that ends in .zip"),
        (["--to", "site.wacz", "--as", "hosting"], 2, "--as hosting is for files, and a WACZ holds the captures"),
        (["--to", "site.warc.gz", "--external", "none"], 2, "--external is for files, and a WARC holds the captures"),
        (["--to", "site", "--no-rewrite", "--external", "none"], 2, "leave out --external"),
        (["--to", "there"], 3, "there"),
        ([], 2, "Missing option '--to'"),
    ],
)
def test_what_is_refused(
    recovery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, message: str
) -> None:
    """Each says what was expected, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    done = unlost("export", str(recovery), *options)
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert [str(each.relative_to(tmp_path)) for each in sorted(tmp_path.rglob("*"))] == ["there", "there/file"]


@pytest.mark.parametrize("name", ["site", "site.zip"])
def test_ctrl_c(tmp_path: Path, name: str) -> None:
    """It ends with 130 and a line that says so, and nothing is left of what was begun."""
    first = f"{OTHER_ROOT}0.bin"
    copies = [SampleCapture(first, bytes(8 << 20), "image/png")]
    copies += [SampleCapture(f"{OTHER_ROOT}{number}.bin", mime="image/png", same_as=first) for number in range(1, 400)]
    folder, out = make_recovery(tmp_path / "r", copies), tmp_path / "out"
    out.mkdir()
    with subprocess.Popen(
        [UNLOST, "export", str(folder), "--to", str(out / name)], stderr=subprocess.PIPE, env={**os.environ}
    ) as process:
        wait_until(lambda: any(each.stat().st_size for each in out.rglob("*") if each.is_file()))
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert (process.returncode, said.strip()) == (130, b"unlost: interrupted"), said
    assert list(out.iterdir()) == []


def test_nothing_can_be_read(tmp_path: Path) -> None:
    """Where no copy is whole, no site of no files is made, of whatever kind."""
    folder = make_recovery(tmp_path / "r", [SampleCapture(OTHER_ROOT, b"x")])
    (warc,) = (folder / "warc").iterdir()
    warc.unlink()
    for name in ("site", "site.zip", "site.wacz"):
        done = unlost("export", str(folder), "--to", str(tmp_path / name), "--json")
        assert (done.returncode, done.stdout) == (3, b"")
        assert b"nothing can be exported, first: " in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["r"]


def test_no_recovery(tmp_path: Path) -> None:
    """A folder that is none, and one in which nothing is yet, say so and leave nothing."""
    (tmp_path / "none").mkdir()
    make_recovery(tmp_path / "new", [])
    said = {
        "nowhere": "cannot be read: No such file or directory: give the folder of a recovery",
        "none": "not the folder of a recovery",
        "new": "nothing was recovered so far",
    }
    for folder, message in said.items():
        for to in ("site", "site.wacz"):
            done = unlost("export", str(tmp_path / folder), "--to", str(tmp_path / to))
            assert (done.returncode, message in done.stderr.decode()) == (3, True), done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "none"]
