"""Tests of a recovery as WACZ: content, validation by py-wacz, and replay by pywb."""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import unlost
from tests.export.conftest import SampleRecovery
from tests.export.sample_recoveries import SampleCapture, make_recovery
from tests.external import pywb
from tests.recovery.archives import Archives
from tests.recovery.command import Command
from tests.recovery.recovery_output import read_warcs
from tests.recovery.recovery_runner import SITE
from tests.recovery.sample_site import PAGES
from tests.recovery.site import ROOT
from unlost.errors import UsageError
from unlost.export import write_wacz, write_warc
from unlost.recovery.state import StateReader

WACZ = pywb.ROOT / ".neighbours" / "wacz" / "bin" / "wacz"


def validate(path: Path) -> tuple[bool, str]:
    """Return whether py-wacz considers a file valid, and its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [WACZ, "validate", "-f", path], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    return done.returncode == 0 and "Validation succeeded" in done.stdout, done.stdout + done.stderr


def read_members(path: Path) -> dict[str, bytes]:
    """Return the members of a WACZ."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read_json_lines(data: bytes) -> list[dict[str, Any]]:
    """Return the objects of JSON Lines."""
    return [json.loads(line) for line in data.splitlines()]


def test_wacz_has_required_members_and_digests(tmp_path: Path, recovery: Path) -> None:
    """Members and their digests are correct, and records and blocks are stored uncompressed."""
    done = write_wacz(recovery, tmp_path / "a.wacz", title="A lost site")
    found = read_members(tmp_path / "a.wacz")
    assert set(found) == {
        "archive/data.warc.gz", "indexes/index.cdx.gz", "indexes/index.idx", "pages/pages.jsonl", "datapackage.json",
        "datapackage-digest.json",
    }  # fmt: skip
    about = json.loads(found["datapackage.json"])
    assert (about["profile"], about["wacz_version"], about["title"]) == ("data-package", "1.1.1", "A lost site")
    assert (about["mainPageUrl"], about["mainPageDate"]) == (SITE, "2014-01-01T00:00:00Z")
    assert {each["path"] for each in about["resources"]} == {name for name in found if "/" in name}
    for each in about["resources"]:
        digest = hashlib.sha256(found[each["path"]]).hexdigest()
        assert (each["hash"], each["bytes"]) == (f"sha256:{digest}", len(found[each["path"]]))
    digest = hashlib.sha256(found["datapackage.json"]).hexdigest()
    assert json.loads(found["datapackage-digest.json"]) == {"path": "datapackage.json", "hash": f"sha256:{digest}"}
    with zipfile.ZipFile(tmp_path / "a.wacz") as archive:
        kinds = {info.filename: info.compress_type for info in archive.infolist()}
    assert kinds["archive/data.warc.gz"] == kinds["indexes/index.cdx.gz"] == zipfile.ZIP_STORED
    assert (done.copies, done.pages, done.problems.total) == (7, 6, 0)
    assert done.bytes == (tmp_path / "a.wacz").stat().st_size
    assert [file.name for file in tmp_path.iterdir()] == ["a.wacz"]


def test_warc_member_equals_warc_export(tmp_path: Path, recovery: Path) -> None:
    """The bytes are equal."""
    write_wacz(recovery, tmp_path / "a.wacz")
    write_warc(recovery, tmp_path / "data.warc.gz")
    assert read_members(tmp_path / "a.wacz")["archive/data.warc.gz"] == (tmp_path / "data.warc.gz").read_bytes()


def test_page_list_has_html_pages_with_titles(tmp_path: Path, recovery: Path) -> None:
    """In the order of discovery, with titles in any charset, also for revisits."""
    write_wacz(recovery, tmp_path / "a.wacz")
    first, *pages = read_json_lines(read_members(tmp_path / "a.wacz")["pages/pages.jsonl"])
    assert first == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    assert pages[0]["url"] == SITE
    assert {each["url"].removeprefix(SITE): (each.get("title"), each["ts"][:4]) for each in pages} == {
        "": ("Front", "2014"),
        "one": ("one", "2014"),
        "same/1": ("Twice & the same", "2014"),
        "same/2": ("Twice & the same", "2014"),
        "latin": ("Gr\u00fc\u00dfe", "2014"),
        "sold": ("Not sold", "2013"),
    }
    assert len({each["id"] for each in pages}) == len(pages)


def test_index_equals_index_build(tmp_path: Path, recovery: Path) -> None:
    """`unlost index build` makes the same index, and all blocks are where the .idx says."""
    write_wacz(recovery, tmp_path / "a.wacz")
    found = read_members(tmp_path / "a.wacz")
    rows = gzip.decompress(found["indexes/index.cdx.gz"])
    done = unlost("index", "build", str(tmp_path / "a.wacz"), "-o", str(tmp_path / "index.cdxj"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "index.cdxj").read_bytes() == rows
    meta, *blocks = found["indexes/index.idx"].splitlines()
    assert meta.startswith(b'!meta 0 {"format": "cdxj-gzip-1.0"')
    for line in blocks:
        key, date, fields = line.split(b" ", 2)
        place = json.loads(fields)
        block = found["indexes/index.cdx.gz"][place["offset"] :][: place["length"]]
        assert gzip.decompress(block).startswith(key + b" " + date + b" {")
        assert place["digest"] == f"sha256:{hashlib.sha256(block).hexdigest()}"
    assert len(blocks) == 1


def test_wacz_is_deterministic(tmp_path: Path, recovery: Path) -> None:
    """The name of the file does not matter."""
    shutil.copytree(recovery, tmp_path / "copy")
    write_wacz(recovery, tmp_path / "a.wacz")
    write_wacz(tmp_path / "copy", tmp_path / "b.wacz")
    assert (tmp_path / "a.wacz").read_bytes() == (tmp_path / "b.wacz").read_bytes()


def test_default_title_is_the_host(tmp_path: Path, recovery: Path) -> None:
    """It is shown in lists of collections."""
    write_wacz(recovery, tmp_path / "a.wacz")
    assert json.loads(read_members(tmp_path / "a.wacz")["datapackage.json"])["title"] == "lost.example"


def test_large_wacz_is_zip64(tmp_path: Path, recovery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With recoveries of more than 2 GiB it is still valid and readable."""
    monkeypatch.setattr("unlost.export.wacz.ZIP64_LIMIT", 1000)
    write_wacz(recovery, tmp_path / "a.wacz")
    assert validate(tmp_path / "a.wacz")[0]
    assert unlost("index", "check", str(tmp_path / "a.wacz")).returncode == 0


def test_damaged_records_are_reported_and_left_out(tmp_path: Path, recovery: Path) -> None:
    """The other records are written."""
    shutil.copytree(recovery, tmp_path / "r")
    with StateReader(tmp_path / "r") as state:
        (found,) = [chosen for chosen in state.chosen_captures() if chosen.uri == SITE + "latin"]
    file = tmp_path / "r" / "warc" / found.file
    data = bytearray(file.read_bytes())
    data[found.offset + 100] ^= 1
    file.write_bytes(data)
    done = write_wacz(tmp_path / "r", tmp_path / "a.wacz")
    assert (done.copies, done.pages, dict(done.problems.counts)) == (6, 5, {"damaged-record": 1})
    assert unlost("index", "check", str(tmp_path / "a.wacz")).returncode == 0


def test_other_extension_is_refused(tmp_path: Path, recovery: Path) -> None:
    """The format requires it."""
    with pytest.raises(UsageError, match=r"ends in \.wacz"):
        write_wacz(recovery, tmp_path / "a.zip")


def test_interrupted_export_leaves_no_files(tmp_path: Path, recovery: Path) -> None:
    """There is no final and no temporary file."""

    def interrupt(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_wacz(recovery, tmp_path / "a.wacz", on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def _changed(packed: bytes) -> bytes:
    return packed[:9] + bytes([packed[9] ^ 1]) + packed[10:]


@pytest.mark.parametrize("planted", ["archive/data.warc.gz", "datapackage.json"])
def test_py_wacz_detects_a_changed_byte(tmp_path: Path, recovery: Path, planted: str) -> None:
    """A changed byte in a member makes the file invalid."""
    write_wacz(recovery, tmp_path / "a.wacz")
    found = read_members(tmp_path / "a.wacz")
    # The OS byte of gzip: other changes may make the member unreadable before its digest is compared.
    found[planted] = _changed(found[planted]) if planted.endswith(".gz") else found[planted].replace(b"2", b"3", 1)
    with zipfile.ZipFile(tmp_path / "b.wacz", "w") as archive:
        for name, data in found.items():
            archive.writestr(name, data)
    is_valid, output = validate(tmp_path / "b.wacz")
    assert not is_valid
    assert "Validation failed" in output


def test_sample_site_is_valid_and_replayed_by_pywb(sample_recovery: SampleRecovery, tmp_path: Path) -> None:
    """Every page and image is replayed with its bytes, and `unlost compare` finds no difference."""
    wacz = tmp_path / "sample.wacz"
    written = write_wacz(sample_recovery.folder, wacz)
    assert (written.copies, written.pages, written.problems.total) == (1 + 2 * PAGES, 1 + PAGES, 0)
    is_valid, output = validate(wacz)
    assert is_valid, output
    done = json.loads(unlost("compare", "--json", str(sample_recovery.folder), str(wacz)).stdout.splitlines()[-1])
    assert done["difference"] == {"changed": 0, "missing": 0, "added": 0, "success": 0}
    assert done["resources"]["identical"] == 1 + 2 * PAGES
    place = tmp_path / "pywb"
    place.mkdir()
    with pywb.serve_wacz(wacz, place) as server:
        for _, each in sample_recovery.site.captures():
            response = server.fetch(each.date, each.uri)
            assert (response.status, response.body) == (each.status, each.body), each.uri


def test_special_cases_are_replayed_by_pywb(running_archives: Archives, tmp_path: Path) -> None:
    """The special cases of the reference site are replayed as recovered."""
    command = Command(running_archives.registry, tmp_path / "reference.recovery", tmp_path / "home")
    assert command.run(f"{ROOT}special/").code == 0
    wacz = tmp_path / "reference.wacz"
    written = write_wacz(command.folder, wacz)
    assert written.problems.total == 0
    is_valid, output = validate(wacz)
    assert is_valid, output
    with StateReader(command.folder) as state:
        chosen = list(state.chosen_captures())
    records = read_warcs(command.folder)
    assert written.copies == len(chosen)
    place = tmp_path / "pywb"
    place.mkdir()
    with pywb.serve_wacz(wacz, place) as server:
        for each in chosen:
            response = server.fetch(each.datetime, each.uri)
            expected = records[each.file, each.offset]
            assert (response.status, response.body) == (expected.status, expected.body), each.uri


def test_invalid_host_has_no_default_title(tmp_path: Path) -> None:
    """The WACZ is valid without a title."""
    folder = make_recovery(tmp_path / "r", [SampleCapture("http://user[@lost.example/", b"<p>x")])
    assert write_wacz(folder, tmp_path / "site.wacz").pages == 1
    assert "title" not in json.loads(read_members(tmp_path / "site.wacz")["datapackage.json"])
    assert validate(tmp_path / "site.wacz")[0]
