"""Tests of detecting the kind of a site, and of errors for paths that are not sites."""

import errno
import gzip
import os
import subprocess
from pathlib import Path

import pytest

from tests.warc.warcs import member, record
from unlost.comparison import open_site, readable_bytes
from unlost.errors import InputError, UnlostError, UsageError

HOST = "example.com"
ARC = b"filedesc://a 0.0.0.0 20140101000000 text/plain 0\n\n"
ARC += b"http://example.com/0 1.2.3.4 20140101000000 text/html 22\nHTTP/1.0 200 OK\r\n\r\nabc\n"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.bin", record()),
        ("a.bin", member(record())),
        ("a.bin", subprocess.run(["zstd", "-c"], input=record(), capture_output=True, check=True).stdout),
        ("a.arc", ARC),
    ],
)
def test_archive_files_are_recognised_by_signature(name: str, data: bytes, tmp_path: Path) -> None:
    """For any file name."""
    (tmp_path / name).write_bytes(data)
    assert open_site(tmp_path / name).resources.keys() == {"example.com/0"}


def test_paths_without_a_site_are_rejected(tmp_path: Path) -> None:
    """Missing, empty and foreign paths are rejected with advice."""
    cases: list[tuple[str, type[UnlostError], str]] = [
        ("nowhere", InputError, "No such file"),
        ("empty", InputError, "nothing in it"),
        ("empty.warc", InputError, "an empty file"),
        ("a.txt", InputError, "neither a WARC, an ARC, a WACZ, a zip nor a tar file"),
        ("a.gz", InputError, "neither a WARC, an ARC, a WACZ, a zip nor a tar file"),
        ("pipe", InputError, "neither a file nor a folder"),
        ("flat", UsageError, "give --base"),
        ("crawl", UsageError, "found 'a.warc', beside 'a.cdx': name the archive file itself"),
        ("links", UsageError, "found 'a.warc', a link: name the archive file itself"),
        ("bad.wacz", InputError, "expected a WACZ"),
    ]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.warc").touch()
    (tmp_path / "a.txt").write_text("a text")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a text"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "index.html").touch()
    for name in ("crawl/a.warc", "crawl/a.cdx", "links/.kept"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(record())
    (tmp_path / "links" / "a.warc").symlink_to("../crawl/a.warc")
    (tmp_path / "bad.wacz").write_bytes(b"PK\3\4 and no more")
    for name, kind, output in cases:
        with pytest.raises(kind, match=output):
            open_site(tmp_path / name)


def test_an_empty_archive_is_an_empty_site(tmp_path: Path) -> None:
    """Skipped records are counted; garbage in place of records is reported as a problem."""
    (tmp_path / "a.warc").write_bytes(record(kind="warcinfo") + b"rubbish")
    found = open_site(tmp_path / "a.warc")
    assert (len(found.resources), found.skipped) == (0, {"warcinfo": 1})
    assert found.problems.counts == {"garbage": 1}


def test_a_base_is_rejected_for_archive_files(tmp_path: Path) -> None:
    """Archive files contain URLs; an invalid URL is not a base."""
    (tmp_path / "a.warc").write_bytes(record())
    with pytest.raises(UsageError, match="leave out --base"):
        open_site(tmp_path / "a.warc", base="http://example.com/")
    (tmp_path / "page.html").touch()
    with pytest.raises(UsageError, match="expected the address of a website"):
        open_site(tmp_path, base="mailto:me@example.com")


def test_archives_among_other_files_are_files(tmp_path: Path) -> None:
    """A site may offer a WARC as a download."""
    (tmp_path / HOST).mkdir()
    (tmp_path / HOST / "a.warc").write_bytes(record())
    (tmp_path / HOST / "index.html").write_bytes(b"<p>")
    assert open_site(tmp_path).resources.keys() == {"example.com/", "example.com/a.warc"}
    assert readable_bytes(tmp_path) == len(record()) + 3


def test_a_folder_of_archives_with_an_unreadable_part_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable subfolder could contain a part of the site."""
    (tmp_path / "a.warc").write_bytes(record())
    (tmp_path / "more").mkdir()
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("more"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError, match="more"):
        open_site(tmp_path)
