"""`unlost compare`: output, options and exit codes."""

import gzip
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from tests.cli.run import UNLOST, unlost
from tests.comparison.memory_sites import MemorySite, resource
from tests.export.sample_recoveries import SampleCapture, make_recovery
from tests.waiting import wait_until
from tests.warc.warcs import record
from unlost.cli import compare, run
from unlost.errors import InputError
from unlost.export import MANIFEST_NAME
from unlost.problems import Problem

BASE = "http://a.example/"
WORDS = " ".join(f"word{number}" for number in range(100))
ORIGINAL = {
    "index.html": f"<p>{WORDS}",
    "same.html": "<p>the same",
    "changed.html": "<p>before",
    "gone/one.html": "<p>gone",
    "picture.png": "\x89PNG",
    "notes.txt": "notes",
}
RECOVERED = {
    "index.html": f"<body><b>{WORDS}</b> and more",
    "same.html": "<p>the same",
    "changed.html": "<p>after all",
    "new.html": "<p>new",
}


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in a folder with two sites."""
    monkeypatch.chdir(tmp_path)
    for folder, files in (("original", ORIGINAL), ("recovered", RECOVERED)):
        for name, text in files.items():
            file = tmp_path / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def test_report_shows_headline_vector_and_levels() -> None:
    """And the outcomes by media type."""
    done = unlost("compare", "original", "recovered", "--base", BASE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "3 of 6 resources recovered: 1 unchanged, 2 changed. 3 missing. 1 added."
    assert lines[1].startswith("1 of 2 changed texts is almost identical")
    assert "difference    0.333    0.500  0.250  1.083" in lines
    assert [line.split()[:2] for line in lines if line[:2] in ("s1", "s2", "s3", "s4", "s5")] == [
        ["s1", "1.083"], ["s2", "0.833"], ["s3", "0.667"], ["s4", "0.500"], ["s5", "0.500"],
    ]  # fmt: skip
    assert "almost identical among changed texts: 50 %" in lines
    assert any(line.split()[:4] == ["images", "1", "0", "0"] for line in lines)


def test_penalties_change_the_difference() -> None:
    """For the whole site, a type, or URLs; the last rule that matches counts."""
    words = ["compare", "original", "recovered", "--base", BASE, "--penalties", ".5,1,0"]
    assert b"with penalties    0.167    0.500  0.000  0.667" in unlost(*words).stdout
    words += ("--type-penalties", "image/*=1,0,0", "--uri-penalties", "gone/=1,.4,0")
    assert b"with penalties    0.167    0.233  0.000  0.400" in unlost(*words).stdout


def test_similarity_threshold_is_configurable() -> None:
    """At 100 % no changed text is almost identical."""
    done = unlost("compare", "original", "recovered", "--base", BASE, "--similar", "100")
    assert b"almost identical among changed texts: 0 %" in done.stdout


def test_json_lists_resources_and_summary() -> None:
    """One object for each resource, then the summary."""
    done = unlost("compare", "original", "recovered", "--base", BASE, "--json", "--penalties", "1,1,0")
    *rows, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["event"] for row in rows} == {"resource"}
    assert {row["uri"]: row["outcome"] for row in rows} == {
        f"{BASE}index.html": "changed",
        f"{BASE}same.html": "identical",
        f"{BASE}changed.html": "changed",
        f"{BASE}gone/one.html": "missing",
        f"{BASE}picture.png": "missing",
        f"{BASE}notes.txt": "missing",
        f"{BASE}new.html": "added",
    }
    first = next(row for row in rows if row["uri"] == f"{BASE}index.html")
    assert first["similar"] is True
    assert 0.9 < first["similarity"] < 1
    assert first["original"]["size"] == len(ORIGINAL["index.html"])
    assert first["recovered"]["digest"].startswith("sha1:")
    assert summary["event"] == "summary"
    assert summary["resources"]["missing"] == 3
    assert summary["levels"]["s4"] == 0.5
    assert summary["weighed"]["success"] == pytest.approx(5 / 6)
    assert summary["efficiency"] is None
    groups = {row["label"]: row["recovered"] for row in summary["breakdowns"]["group"]}
    assert groups == {"HTML": 3, "images": 0, "other": 0}


def test_list_selects_outcomes() -> None:
    """The resources with the given outcomes, as TSV."""
    done = unlost("compare", "original", "recovered", "--base", BASE, "--list", "missing", "--list", "added")
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert sorted((row[0], row[3]) for row in rows) == [
        ("added", f"{BASE}new.html"),
        ("missing", f"{BASE}gone/one.html"),
        ("missing", f"{BASE}notes.txt"),
        ("missing", f"{BASE}picture.png"),
    ]
    assert unlost("compare", "original", "recovered", "--base", BASE, "--list", "all").stdout.count(b"\n") == 7


def test_html_page_is_deterministic(tmp_path: Path) -> None:
    """It is written in addition to the output, with the same bytes each time."""
    words = ("compare", "original", "recovered", "--base", BASE, "--html", "page.html")
    assert b"3 of 6 resources" in unlost(*words).stdout
    first = (tmp_path / "page.html").read_bytes()
    assert b"3 of 6 resources recovered" in first
    assert b"<svg" in first
    assert unlost(*words, "--json").returncode == 0
    assert (tmp_path / "page.html").read_bytes() == first
    assert not list(tmp_path.glob(".page*"))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("original", "original"), 2, "original and original are the same"),
        (("original", "link"), 2, "original and link are the same"),
        (("original", "nowhere"), 3, "nowhere: cannot be read: No such file"),
        (("nowhere", "recovered"), 3, "nowhere: cannot be read: No such file"),
        (("original", "recovered", "--penalties", "1,2,3"), 2, "expected a number from 0 to 1"),
        (("original", "recovered", "--penalties", "1"), 2, "expected penalties"),
        (("original", "recovered", "--type-penalties", "image/*"), 2, "expected TYPE=C,M,A"),
        (("original", "recovered", "--uri-penalties", "(=1,1,1"), 2, "no regular expression"),
        (("original", "recovered", "--similar", "101"), 2, "--similar"),
        (("original", "recovered", "--list", "lost"), 2, "--list"),
        (("original", "recovered", "--list", "all", "--json"), 2, "--list and --json"),
        (("original", "recovered", "--html", "nowhere/page.html"), 3, "nowhere/page.html: cannot be written"),
        (("original", "recovered", "--html", "original"), 3, "original: cannot be written"),
        (("original", "recovered", "--base", BASE, "--html", "original/same.html"), 2, "belongs to original"),
        (("original", "recovered", "--base", BASE, "--html", "link/page.html"), 2, "belongs to original"),
        (("a.warc", "recovered", "--base", BASE, "--html", "a.warc"), 2, "belongs to a.warc"),
        (("original", "a.warc", "--base", BASE, "--html", "hard.warc"), 2, "belongs to a.warc"),
        (("empty", "recovered", "--base", BASE), 3, "empty: "),
    ],
)
def test_invalid_arguments_are_rejected(words: tuple[str, ...], code: int, message: str, tmp_path: Path) -> None:
    """In one line; nothing is printed to stdout, and nothing is written."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("original")
    (tmp_path / "a.warc").write_bytes(record())
    (tmp_path / "hard.warc").hardlink_to("a.warc")
    before = sorted(tmp_path.rglob("*"))
    done = unlost("compare", *words)
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert done.stdout == b""
    assert sorted(tmp_path.rglob("*")) == before


def mock_sites(monkeypatch: pytest.MonkeyPatch, original: MemorySite, recovered: MemorySite) -> None:
    """Replace both sites."""
    monkeypatch.setattr(compare, "open_site", lambda path, **_: original if path.name == "original" else recovered)


def test_empty_recovery_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The message says that no resource was found."""
    mock_sites(monkeypatch, MemorySite([resource("a.example/")]), MemorySite([]))
    assert run(["compare", "original", "recovered"]) == 1
    out, err = capsysbinary.readouterr()
    assert out.startswith(b"0 of 1 resource recovered.\n")
    assert b"recovered: no resource of a site is in it" in err


def test_damaged_original_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """First the damage, then that there is nothing to compare with."""
    original = MemorySite([])
    original.problems.add(Problem("bad-gzip", "original", None, 5, "cut"))
    mock_sites(monkeypatch, original, MemorySite([resource("a.example/")]))
    assert run(["compare", "original", "recovered"]) == 3
    first, second = capsysbinary.readouterr().err.splitlines()
    assert b"bad-gzip" in first
    assert b"nothing to compare with" in second


def test_base_applies_only_to_folders(tmp_path: Path) -> None:
    """Archive files have their own URLs; without a folder, `--base` is rejected."""
    example = Path(__file__).parents[2] / "docs" / "examples" / "lost"
    first, second = example / "first" / "first.warc", example / "second" / "second.warc"
    (tmp_path / "original" / "roses.html").write_text("<p>other roses")
    words = ("--base", "http://lost.example/", "--list", "changed")
    done = unlost("compare", "original", str(first), *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"\ttext/html\thttp://lost.example/roses.html\n")
    refused = unlost("compare", str(first), str(second), *words)
    assert (refused.returncode, b"--base is for folders" in refused.stderr) == (2, True)


def test_sites_without_common_urls_fail_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Most likely these are two sites, or a folder has the wrong base."""
    mock_sites(monkeypatch, MemorySite([resource("a.example/")]), MemorySite([resource("b.example/")]))
    assert run(["compare", "original", "recovered"]) == 1
    err = capsysbinary.readouterr().err
    assert b"no URL in common, such as a.example/ and b.example/" in err
    assert b"--base" in err


def test_unreadable_parts_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The rest is compared, and the exit code is 5."""
    original, recovered = MemorySite([resource("a.example/", b"1")]), MemorySite([resource("a.example/", b"1")])
    original.skipped = {"redirect": 3, "error": 2}
    recovered.problems.add(Problem("bad-gzip", "recovered", None, 5, "cut"), times=1_200)
    mock_sites(monkeypatch, original, recovered)
    assert run(["compare", "original", "recovered"]) == 5
    out, err = capsysbinary.readouterr()
    assert out.startswith(b"1 of 1 resource recovered, unchanged.\n")
    assert b"recovered: 1,200 times a compressed part that is damaged, first: recovered (byte 5)" in err
    assert b"original: not counted, since they are no resources: 2 error responses, 3 redirects" in err
    assert run(["compare", "original", "recovered", "--json"]) == 5
    summary = json.loads(capsysbinary.readouterr().out.splitlines()[-1])
    assert summary["problems"] == {"original": {}, "recovered": {"bad-gzip": 1200}}
    assert summary["left_out"]["original"] == {"error": 2, "redirect": 3}
    assert run(["compare", "original", "recovered", "--html", "page.html"]) == 5
    page = Path("page.html").read_text("utf-8")
    assert "1,200 parts of <bdi>recovered</bdi> could not be read" in page
    assert "in <bdi>original</bdi> could not be read" not in page


def test_uncompared_texts_are_reported_by_reason(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A damaged document is a warning; a body that is no longer readable has exit code 5."""
    names = ("a.example/x.pdf", "a.example/y.pdf", "a.example/page")
    original = [resource(name, b"%PDF-1.4", "application/pdf") for name in names[:2]]
    recovered = [resource(name, b"%PDF-1.4 x", "application/pdf") for name in names[:2]]
    mock_sites(monkeypatch, MemorySite(original), MemorySite(recovered))
    assert run(["compare", "original", "recovered"]) == 0
    assert b"2 texts were not compared: damaged document; first: http://a.example/x.pdf" in (
        capsysbinary.readouterr().err
    )
    original.append(resource(names[2], b"unreadable"))
    recovered.append(resource(names[2], b"text"))
    mock_sites(monkeypatch, MemorySite(original), MemorySite(recovered))
    assert run(["compare", "original", "recovered"]) == 5
    assert b"1 text was not compared: the file was modified during the comparison" in capsysbinary.readouterr().err


def test_deflated_wacz_members_are_reported(tmp_path: Path) -> None:
    """Their bodies are matched and not compared; the message has a workaround."""
    with ZipFile(tmp_path / "a.wacz", "w", ZIP_DEFLATED) as file:
        file.writestr("archive/a.warc", record(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>one"))
    (tmp_path / "b.warc").write_bytes(record(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>two"))
    done = unlost("compare", "a.wacz", "b.warc", "--list", "all")
    assert (done.returncode, done.stdout.split(b"\t")[:2]) == (5, [b"changed", b"unreadable"])
    assert b"compressed in a WACZ: extract it" in done.stderr


def test_hostile_names_are_escaped(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """A URL or media type never controls a terminal; JSON is ASCII."""
    evil = "\x1b]0;owned\x07\u202e\x9b31m\r\n\t\x00\udcff<script>"
    original = MemorySite([resource(f"a.example/{evil}", b"1", f"text/{evil}"), resource("a.example/b", b"unreadable")])
    recovered = MemorySite([resource(f"b.example/{evil}", b"2", f"text/{evil}"), resource("a.example/b", b"2")])
    recovered.skipped = {evil: 1}
    mock_sites(monkeypatch, original, recovered)
    for more in ([], ["--list", "all"], ["--json"], ["--html", "page.html"]):
        run(["compare", "original", "recovered", *more])
        out, err = (text.decode() for text in capsysbinary.readouterr())
        for line in (out + err).replace("\t", "").splitlines():
            assert line.isprintable(), line
        assert "owned" in out, "it is there, spelled out"
        if more == ["--json"]:
            assert out.isascii()
            assert json.loads(out.splitlines()[0])["outcome"]
    assert Path("page.html").read_bytes().decode().replace("\n", "").isprintable()


def test_failure_of_one_site_stops_reading_the_other(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It is not read to its end."""
    began: list[float] = []

    def open_site(path: Path, *, on_read: Callable[[int], None], **_: object) -> MemorySite:
        if path.name == "original":
            raise InputError("original: no site at all")
        began.append(time.monotonic())
        while time.monotonic() - began[0] < 30:
            on_read(1)
        raise AssertionError("it was read to its end")

    monkeypatch.setattr(compare, "open_site", open_site)
    assert run(["compare", "original", "recovered"]) == 3
    assert capsysbinary.readouterr().err == b"unlost: original: no site at all\n"
    assert time.monotonic() - began[0] < 10


def test_import_loads_no_heavy_modules() -> None:
    """Rendering and documents are imported on first use."""
    import subprocess
    import sys

    code = "import sys, unlost.cli.compare; print([m for m in ('rich', 'sqlalchemy', 'pypdfium2') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_recovery_is_compared_with_its_source(tmp_path: Path) -> None:
    """Two archives have more of the site than one of them."""
    example = Path(__file__).parents[2] / "docs" / "examples" / "lost"
    made = unlost("recover", "http://www.lost.example/", "--archives", str(example / "archives.toml"), "-o", "back")
    assert made.returncode == 0, made.stderr
    done = unlost("compare", str(example / "first"), "back", "--json")
    assert done.returncode == 0, done.stderr
    *rows, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["uri"]: row["outcome"] for row in rows} == {
        "http://lost.example/": "identical",
        "http://lost.example/style.css": "identical",
        "http://lost.example/roses.html": "changed",
        "http://www.lost.example/herbs/index.html": "added",
    }
    assert summary["levels"]["s4"] == 0
    before = sorted((each, each.stat().st_mtime_ns) for each in (tmp_path / "back").rglob("*"))
    assert unlost("compare", "back", str(example / "first"), "--list", "missing").stdout.count(b"\n") == 1
    for page in ("back/state.sqlite", "back/warc/page.html"):
        assert unlost("compare", str(example / "first"), "back", "--html", page).returncode == 2
    assert sorted((each, each.stat().st_mtime_ns) for each in (tmp_path / "back").rglob("*")) == before


def test_html_page_in_a_recovery_folder_is_not_compared(tmp_path: Path) -> None:
    """It can be written again."""
    example = Path(__file__).parents[2] / "docs/examples/lost"
    url = "http://www.lost.example/"
    assert unlost("recover", url, "--archives", str(example / "archives.toml"), "-o", "back").returncode == 0
    for _ in range(2):
        assert unlost("compare", str(example / "first"), "back", "--html", "back/page.html").returncode == 0
    assert (tmp_path / "back" / "page.html").exists()


def test_interruption_leaves_no_page(tmp_path: Path) -> None:
    """Ctrl-C while a large file is read stops within moments, with one line on stderr."""
    with (tmp_path / "original" / "large.bin").open("wb") as file:
        file.truncate(1 << 40)  # of which the disk has nothing: to read it all would take hours
    command = [str(UNLOST), "compare", "original", "recovered", "--base", BASE, "--html", "page.html"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        opened = Path(f"/proc/{process.pid}/fd")
        wait_until(lambda: any(link.resolve().name == "large.bin" for link in opened.iterdir()))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.strip()) == (130, b"", b"unlost: interrupted")
    assert not (tmp_path / "page.html").exists()


# ---------------------------------------------------------------- what `unlost export` writes

LOST = "http://lost.example/"
CAPTURES = [
    SampleCapture(LOST, b'<title>Home</title><a href="/a?x=1">one</a><a href="/b/">two</a><img src="/p.php">'),
    SampleCapture(f"{LOST}a?x=1", f"<title>A</title><p>{WORDS}".encode()),
    SampleCapture(f"{LOST}b/", b'<title>B</title><a href="/">home</a><a href="/A">other case</a>'),
    SampleCapture(f"{LOST}A", b"<title>Upper</title>"),
    SampleCapture(f"{LOST}p.php", b"GIF89a", "image/gif"),
    SampleCapture(f"{LOST}.htaccess", b"text", "text/plain"),
]


@pytest.fixture
def recovery(tmp_path: Path) -> Path:
    """Make a recovery whose export has rewritten links and changed names."""
    return make_recovery(tmp_path / "lost.recovery", CAPTURES)


@pytest.mark.parametrize("name", ["site", "site.zip", "site.tar.gz", "site.tar"])
@pytest.mark.parametrize("options", [(), ("--as", "hosting"), ("--windows-names",), ("--no-rewrite",)])
def test_exports_equal_their_recovery(recovery: Path, tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    """Every file is matched with its URL, and rewritten links are no change."""
    place = tmp_path / (name if name != "site.tar" else "site.tar.gz")
    assert unlost("export", str(recovery), "-o", str(place), *options).returncode == 0
    if name == "site.tar":
        place = tmp_path / name
        place.write_bytes(gzip.decompress((tmp_path / "site.tar.gz").read_bytes()))
    done = unlost("compare", str(recovery), str(place), "--json")
    assert done.returncode == 0, done.stderr
    *rows, summary = map(json.loads, done.stdout.splitlines())
    assert {row["uri"]: row["outcome"] for row in rows} == {each.uri: "identical" for each in CAPTURES}
    assert summary["resources"]["missing"] == 0


def test_modified_export_is_compared(recovery: Path, tmp_path: Path) -> None:
    """Edited files are changed, deleted ones missing, new ones added."""
    assert unlost("export", str(recovery), "-o", str(tmp_path / "site")).returncode == 0
    site = tmp_path / "site"
    (changed,) = site.glob("a-x=1*")
    changed.write_text(changed.read_text() + " and more")
    (site / "index.html").unlink()
    (site / "new.html").write_text("<p>new")
    done = unlost("compare", str(recovery), "site", "--json")
    assert done.returncode == 0, done.stderr
    found = {row["uri"]: row for row in map(json.loads, done.stdout.splitlines()) if row["event"] == "resource"}
    outcomes = {uri.removeprefix(LOST): row["outcome"] for uri, row in found.items() if row["outcome"] != "identical"}
    assert outcomes == {"": "missing", "a?x=1": "changed", "new.html": "added"}
    assert found[f"{LOST}a?x=1"]["similar"] is True


@pytest.mark.parametrize("pack", ["zip", "tar"])
def test_packages_without_manifest_need_a_base(tmp_path: Path, pack: str) -> None:
    """Any zip or tar file is read with `--base`."""
    place = Path(shutil.make_archive(str(tmp_path / "packed"), pack, tmp_path / "recovered"))
    done = unlost("compare", "original", str(place), "--original-base", BASE)
    assert done.returncode == 2
    assert b"expected an export with a manifest, or folders named after hosts" in done.stderr
    done = unlost("compare", "original", str(place), "--base", BASE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == unlost("compare", "original", "recovered", "--base", BASE).stdout


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.zip", b"PK\3\4 and then nothing"),
        ("a.tar", b"no tar file at all"),
        ("a.tar.gz", gzip.compress(b"no tar file at all")),
        ("a.tgz", gzip.compress(b"x" * 5000)[:-20]),
    ],
)
def test_damaged_packages_are_rejected(tmp_path: Path, name: str, content: bytes) -> None:
    """No resource is reported as missing."""
    (tmp_path / name).write_bytes(content)
    done = unlost("compare", "original", name, "--original-base", BASE)
    assert (done.returncode, done.stdout) == (3, b""), done.stderr
    assert done.stderr.startswith(f"unlost: {name}: damaged".encode())


def test_damaged_manifest_is_rejected(recovery: Path, tmp_path: Path) -> None:
    """The message has its line, and no resource is reported as missing."""
    assert unlost("export", str(recovery), "-o", str(tmp_path / "site")).returncode == 0
    manifest = tmp_path / "site" / MANIFEST_NAME
    lines = manifest.read_bytes().splitlines(keepends=True)
    for text, message in (
        (b"".join([lines[0], b"[]\n"]), b":2: expected an object in JSON"),
        (b"".join([lines[0], b"{}\n"]), b":2: expected an entry of a manifest"),
        (lines[0].replace(b": 1", b": 2"), b"expected a manifest of version 1"),
        (b"", b":1: expected an object in JSON"),
    ):
        manifest.write_bytes(text)
        done = unlost("compare", str(recovery), "site")
        assert (done.returncode, done.stdout) == (3, b"")
        assert message in done.stderr


def test_folders_without_common_urls_fail_with_a_hint(tmp_path: Path) -> None:
    """And so does a file without resources."""
    done = unlost("compare", "original", "recovered", "--original-base", BASE, "--recovered-base", "http://b.example/")
    assert done.returncode == 1
    assert b"the two have no URL in common, such as a.example/" in done.stderr
    assert b"check that both are the same site" in done.stderr
    (tmp_path / "empty.warc").write_bytes(record(b"no answer", kind="warcinfo"))
    done = unlost("compare", "original", "empty.warc", "--original-base", BASE)
    assert done.returncode == 1
    assert b"empty.warc: no resource of a site is in it" in done.stderr
