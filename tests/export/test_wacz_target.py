"""A recovery as a WACZ: what is in it, that the tool of the format calls it valid, and that pywb replays it."""

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
from tests.export.conftest import Recovered
from tests.export.sample_recoveries import Copy, recovered
from tests.neighbours import pywb
from tests.recover.archives import Archives
from tests.recover.command import Command
from tests.recover.reading import kept
from tests.recover.running import SITE
from tests.recover.site import ROOT
from tests.recover.village import PAGES
from unlost.errors import UsageError
from unlost.export import write_wacz, write_warc
from unlost.recover.state import StateReader

WACZ = pywb.ROOT / ".neighbours" / "wacz" / "bin" / "wacz"


def validate(path: Path) -> tuple[bool, str]:
    """Return whether the tool of the format calls a file valid, and what it says."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [WACZ, "validate", "-f", path], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    return done.returncode == 0 and "Validation succeeded" in done.stdout, done.stdout + done.stderr


def read(path: Path) -> dict[str, bytes]:
    """Return the members of a WACZ."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def lines(data: bytes) -> list[dict[str, Any]]:
    """Return objects, one a line."""
    return [json.loads(line) for line in data.splitlines()]


def test_it_is_laid_out_as_the_format_says(tmp_path: Path, recovery: Path) -> None:
    """Members, digests of them all, records and blocks stored as they are."""
    done = write_wacz(recovery, tmp_path / "a.wacz", title="A lost site")
    found = read(tmp_path / "a.wacz")
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


def test_its_warc_is_the_one_that_is_written_alone(tmp_path: Path, recovery: Path) -> None:
    """Byte for byte."""
    write_wacz(recovery, tmp_path / "a.wacz")
    write_warc(recovery, tmp_path / "data.warc.gz")
    assert read(tmp_path / "a.wacz")["archive/data.warc.gz"] == (tmp_path / "data.warc.gz").read_bytes()


def test_its_pages_are_listed(tmp_path: Path, recovery: Path) -> None:
    """HTML only, in the order in which it was found, with titles in any charset, also of a page without a body."""
    write_wacz(recovery, tmp_path / "a.wacz")
    first, *pages = lines(read(tmp_path / "a.wacz")["pages/pages.jsonl"])
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


def test_its_index_is_what_others_would_make(tmp_path: Path, recovery: Path) -> None:
    """`unlost index build` makes the same of it; every block is where the list says."""
    write_wacz(recovery, tmp_path / "a.wacz")
    found = read(tmp_path / "a.wacz")
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


def test_the_same_recovery_makes_the_same_file(tmp_path: Path, recovery: Path) -> None:
    """Whatever it is called."""
    shutil.copytree(recovery, tmp_path / "copy")
    write_wacz(recovery, tmp_path / "a.wacz")
    write_wacz(tmp_path / "copy", tmp_path / "b.wacz")
    assert (tmp_path / "a.wacz").read_bytes() == (tmp_path / "b.wacz").read_bytes()


def test_without_a_title_it_has_that_of_its_host(tmp_path: Path, recovery: Path) -> None:
    """People see it in lists of collections."""
    write_wacz(recovery, tmp_path / "a.wacz")
    assert json.loads(read(tmp_path / "a.wacz")["datapackage.json"])["title"] == "lost.example"


def test_a_large_one_is_in_the_form_of_zip64(tmp_path: Path, recovery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is where the files of the recovery have more than 2 GiB: valid, and read by ourselves."""
    monkeypatch.setattr("unlost.export.wacz.ZIP64_LIMIT", 1000)
    write_wacz(recovery, tmp_path / "a.wacz")
    assert validate(tmp_path / "a.wacz")[0]
    assert unlost("index", "check", str(tmp_path / "a.wacz")).returncode == 0


def test_damaged_records_are_counted(tmp_path: Path, recovery: Path) -> None:
    """As in a WARC; the rest is there."""
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


def test_another_ending_is_refused(tmp_path: Path, recovery: Path) -> None:
    """The format demands it."""
    with pytest.raises(UsageError, match=r"ends in \.wacz"):
        write_wacz(recovery, tmp_path / "a.zip")


def test_an_interrupted_export_leaves_nothing(tmp_path: Path, recovery: Path) -> None:
    """Neither under the name nor beside it."""

    def interrupt(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_wacz(recovery, tmp_path / "a.wacz", on_progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def _changed(packed: bytes) -> bytes:
    return packed[:9] + bytes([packed[9] ^ 1]) + packed[10:]


@pytest.mark.parametrize("planted", ["archive/data.warc.gz", "datapackage.json"])
def test_the_tool_of_the_format_would_see_a_fault(tmp_path: Path, recovery: Path, planted: str) -> None:
    """A byte that is changed in a member makes it invalid."""
    write_wacz(recovery, tmp_path / "a.wacz")
    found = read(tmp_path / "a.wacz")
    # Of gzip, the byte that names the operating system: any other may make it unreadable before a digest is compared.
    found[planted] = _changed(found[planted]) if planted.endswith(".gz") else found[planted].replace(b"2", b"3", 1)
    with zipfile.ZipFile(tmp_path / "b.wacz", "w") as archive:
        for name, data in found.items():
            archive.writestr(name, data)
    is_valid, said = validate(tmp_path / "b.wacz")
    assert not is_valid
    assert "Validation failed" in said


def test_the_village_is_valid_replayed_and_compared(recovered_village: Recovered, tmp_path: Path) -> None:
    """Pywb adds it by its own tool, and gives every page and image with the right bytes; nothing differs."""
    wacz = tmp_path / "village.wacz"
    written = write_wacz(recovered_village.folder, wacz)
    assert (written.copies, written.pages, written.problems.total) == (1 + 2 * PAGES, 1 + PAGES, 0)
    is_valid, said = validate(wacz)
    assert is_valid, said
    done = json.loads(unlost("compare", "--json", str(recovered_village.folder), str(wacz)).stdout.splitlines()[-1])
    assert done["difference"] == {"changed": 0, "missing": 0, "added": 0, "success": 0}
    assert done["resources"]["identical"] == 1 + 2 * PAGES
    place = tmp_path / "pywb"
    place.mkdir()
    with pywb.serving_wacz(wacz, place) as server:
        for _, each in recovered_village.site.captures():
            answer = server.fetch(each.date, each.uri)
            assert (answer.status, answer.body) == (each.status, each.body), each.uri


def test_strange_addresses_and_revisits_are_replayed(running_archives: Archives, tmp_path: Path) -> None:
    """Of the town, all that has something special: pywb gives back what the recovery has of it."""
    command = Command(running_archives.registry, tmp_path / "town.recovery", tmp_path / "home")
    assert command.run(f"{ROOT}special/").code == 0
    wacz = tmp_path / "town.wacz"
    written = write_wacz(command.folder, wacz)
    assert written.problems.total == 0
    is_valid, said = validate(wacz)
    assert is_valid, said
    with StateReader(command.folder) as state:
        chosen = list(state.chosen_captures())
    copies = kept(command.folder)
    assert written.copies == len(chosen)
    place = tmp_path / "pywb"
    place.mkdir()
    with pywb.serving_wacz(wacz, place) as server:
        for each in chosen:
            answer = server.fetch(each.datetime, each.uri)
            expected = copies[each.file, each.offset]
            assert (answer.status, answer.body) == (expected.status, expected.body), each.uri


def test_a_title_that_cannot_be_told(tmp_path: Path) -> None:
    """An address that not everybody takes for one costs the title and nothing else."""
    folder = recovered(tmp_path / "r", [Copy("http://user[@lost.example/", b"<p>x")])
    assert write_wacz(folder, tmp_path / "site.wacz").pages == 1
    assert "title" not in json.loads(read(tmp_path / "site.wacz")["datapackage.json"])
    assert validate(tmp_path / "site.wacz")[0]
