"""`unlost map sample` against pywb."""

import gzip
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archives.clients.records import PAGE, response
from tests.cli.maps import rows
from tests.cli.run import unlost
from tests.cli.settings import home
from tests.external import pywb
from tests.external.process import free_port
from unlost.cli import run

SITE = "http://example.com"
RECORDS = [
    response(f"{SITE}/", "2014-02-10T00:00:01Z", b'<html lang="pt-BR"><p>ola'),
    response(f"{SITE}/", "2016-02-10T00:00:01Z", b"<!doctype html>\n<html class=x lang=en><p>hello"),
    response(f"{SITE}/a/?q=1", "2015-02-10T00:00:01Z", b"<p>one", "200 OK", f"Content-Type: {PAGE}",
             "Content-Language: de-AT"),
    response(f"{SITE}/a?q=2", "2015-02-10T00:00:01Z", b"<p>two", "200 OK", f"Content-Type: {PAGE}",
             "Content-Language: de, fr"),
    response(f"{SITE}/a?q=3", "2015-02-10T00:00:01Z", b"<p>three"),
    response(f"{SITE}/logo.png", "2015-02-10T00:00:01Z", b"png", "200 OK", "Content-Type: image/png"),
    response(f"{SITE}/gone", "2015-02-10T00:00:01Z", b"gone", "404 Not Found"),
    response("http://other.example/caf%C3%A9", "2013-02-10T00:00:01Z"),
    response("http://other.example/unasked", "2013-02-10T00:00:01Z"),
]  # fmt: skip
SAMPLED_URLS = [
    f"{SITE}/", "https://www.example.com", f"{SITE}/a?q=1", f"{SITE}/a?q=2", f"{SITE}/missing", f"{SITE}/logo.png",
    f"{SITE}/gone", "http://other.example/café", "http://nowhere.example/", "http://nowhere.example/x?y",
]  # fmt: skip
HELD = {
    f"{SITE}/",
    f"{SITE}/a/?q=1",
    f"{SITE}/a?q=2",
    f"{SITE}/logo.png",
    f"{SITE}/gone",
    "http://other.example/caf%C3%A9",
}


class SampledArchive:
    """A pywb, and its registry and index."""

    def __init__(self, server: pywb.Pywb, folder: Path) -> None:
        self.folder = folder
        self.registry = folder / "archives.toml"
        base = f"http://127.0.0.1:{server.port}/t/"
        self.registry.write_text(
            f'[[archive]]\nid = "p"\nname = "P"\nkind = "pywb"\nlimits = []\ncdx = "{base}cdx"\n'
            f'replay = "{base}{{datetime}}id_/{{uri}}"\n'
            f'[[archive]]\nid = "m"\nname = "M"\nkind = "memento"\nlimits = []\ntimemap = "{base}timemap/link/"\n'
        )
        # The index rows of the sampled pages.
        rows = [line for line in (folder / "a.cdxj").read_bytes().splitlines() if self._url(line) in HELD]
        (folder / "part.cdxj").write_bytes(b"\n".join(rows) + b"\n")

    @staticmethod
    def _url(line: bytes) -> str:
        return str(json.loads(line[line.index(b"{") :])["url"])

    def sample(
        self, place: Path, *arguments: str, archive: str = "p", stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Sample into `m.ukvs` in a folder, with a home there."""
        return unlost(
            "map", "sample", "--archives", str(self.registry), "--archive", archive, "-o", str(place / "m.ukvs"),
            *arguments, stdin=stdin, env=home(place),
        )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampledArchive]:
    """Serve some pages by pywb."""
    folder = tmp_path_factory.mktemp("pywb")
    (folder / "a.warc.gz").write_bytes(b"".join(RECORDS))
    done = unlost("index", "build", str(folder / "a.warc.gz"), "-o", str(folder / "a.cdxj"))
    assert done.returncode == 0
    with pywb.serve_index(folder / "a.cdxj", folder, folder) as server:
        yield SampledArchive(server, folder)


@pytest.fixture
def url_list(tmp_path: Path) -> str:
    """Return the path of a list of URLs."""
    path = tmp_path / "asked.txt"
    path.write_text("# a sample\n\n" + "\n".join(SAMPLED_URLS) + "\n")
    return str(path)


@pytest.mark.parametrize(("archive", "options"), [("p", []), ("p", ["--by", "year", "--urir"]), ("m", ["--urir"])])
def test_sample_equals_a_map_of_its_pages(
    site: SampledArchive, url_list: str, tmp_path: Path, options: list[str], archive: str
) -> None:
    """By CDX or TimeMap, with lower bounds."""
    done = site.sample(tmp_path, "--uris", url_list, *options, archive=archive)
    assert (done.returncode, done.stdout) == (0, b"")
    message = "unlost: 9 addresses: 6 found with 7 mementos, 3 not, 0 not shown, 0 not asked for yet; none failed\n"
    assert done.stderr.decode() == message
    built = unlost("map", "build", str(site.folder / "part.cdxj"), *options, "-o", str(tmp_path / "built.ukvs"))
    assert built.returncode == 0
    bounded = [re.sub(r"\d+(?=/|$)", r"\g<0>+", line.rpartition(" ")[2]) for line in rows(tmp_path / "built.ukvs")]
    keys = [line.rpartition(" ")[0] for line in rows(tmp_path / "built.ukvs")]
    assert rows(tmp_path / "m.ukvs") == [f"{key} {bound}" for key, bound in zip(keys, bounded, strict=True)]
    assert "com,example)/a 2+" in " ".join(rows(tmp_path / "m.ukvs")).replace(" 2015", "")


def test_media_type_year_and_language_are_fields(site: SampledArchive, url_list: str, tmp_path: Path) -> None:
    """From the archive or the capture; such maps are checked, queried, merged and compacted like others."""
    by = ["--by", "language", "--by", "mime", "--by", "year"]
    done = site.sample(tmp_path, "--uris", url_list, *by)
    assert done.returncode == 0
    map_ = tmp_path / "m.ukvs"
    assert '"keys": ["surt", "datetime", "mime", "language"]' in map_.read_text()
    assert rows(map_) == [
        "* 2013 text/html - 1+",
        "* 2014 text/html en 1+",
        "* 2015 image/png - 1+",
        "* 2015 text/html - 2+",
        "* 2015 text/html de 1+",
        "* 2016 text/html en 1+",
        "com,example)/ 2014 text/html en 1+",
        "com,example)/ 2016 text/html en 1+",
        "com,example)/a 2015 text/html - 1+",
        "com,example)/a 2015 text/html de 1+",
        "com,example)/gone 2015 text/html - 1+",
        "com,example)/logo.png 2015 image/png - 1+",
        "example,other)/caf%c3%a9 2013 text/html - 1+",
    ]
    assert unlost("map", "check", str(map_)).returncode == 0
    found = unlost("map", "lookup", str(map_), f"{SITE}/a?q=9", f"{SITE}/missing").stdout.decode().splitlines()
    assert [line.split("\t")[1:] for line in found] == [["yes", "com,example)/a", "2+"], ["no", "-", "-"]]
    twice, rolled = tmp_path / "twice.ukvs", tmp_path / "rolled.ukvs"
    assert unlost("map", "merge", str(map_), str(map_), "-o", str(twice)).returncode == 0
    assert "com,example)/a 2015 text/html de 2+" in rows(twice)
    assert unlost("map", "compact", str(map_), "--rollup", "com,*", "-o", str(rolled)).returncode == 0
    assert rows(rolled)[6:] == [
        "com,* 2014 text/html en 1+",
        "com,* 2015 image/png - 1+",
        "com,* 2015 text/html - 2+",
        "com,* 2015 text/html de 1+",
        "com,* 2016 text/html en 1+",
        "example,other)/caf%c3%a9 2013 text/html - 1+",
    ]
    assert unlost("map", "check", str(rolled)).returncode == 0


def test_compressed_and_piped_lists_give_the_same_map(site: SampledArchive, url_list: str, tmp_path: Path) -> None:
    """Invalid URLs are reported, with exit code 5."""
    plain = Path(url_list).read_bytes()
    packed = tmp_path / "asked.gz"
    packed.write_bytes(gzip.compress(plain))
    results = []
    for number, (name, stdin) in enumerate([(url_list, b""), (str(packed), b""), ("-", plain)]):
        place = tmp_path / str(number)
        place.mkdir()
        done = site.sample(place, "--uris", name, stdin=stdin)
        assert done.returncode == 0
        results.append((place / "m.ukvs").read_bytes())
    assert len(set(results)) == 1
    done = site.sample(tmp_path, "--uris", "-", "--json", stdin=b"http://example.com/\nmailto:a@b.example\nhttp://\n")
    assert done.returncode == 5
    result = json.loads(done.stdout)
    assert (result["addresses"], result["found"], result["problems"]) == (1, 1, {"foreign-scheme": 1, "no-host": 1})
    assert b"<stdin>:2" in done.stderr


def test_raised_limit_sends_only_new_queries(site: SampledArchive, url_list: str, tmp_path: Path) -> None:
    """A run without new URLs sends none, and writes the same map."""
    first = json.loads(site.sample(tmp_path, "--uris", url_list, "--limit", "2", "--json").stdout)
    assert (first["addresses"], first["found"], first["mementos"]) == (2, 2, 3)
    assert rows(tmp_path / "m.ukvs") == ["* 3+", "com,example)/ 2+", "com,example)/a 1+"]
    assert site.sample(tmp_path, "--uris", url_list, "--concurrency", "1").returncode == 0
    whole = (tmp_path / "m.ukvs").read_bytes()
    (tmp_path / "m.ukvs").unlink()
    registry = site.registry.read_text()
    dead = tmp_path / "dead.toml"
    dead.write_text(re.sub(r"(replay = \"http://127.0.0.1:)\d+", rf"\g<1>{free_port()}", registry))
    done = unlost(
        "map", "sample", "--archives", str(dead), "--archive", "p", "-o", str(tmp_path / "m.ukvs"), "--uris", url_list,
        env=home(tmp_path),
    )  # fmt: skip
    assert (done.returncode, (tmp_path / "m.ukvs").read_bytes()) == (0, whole)


def test_misses_are_logged_for_exclusions(site: SampledArchive, url_list: str, tmp_path: Path) -> None:
    """`map exclude` reads the log."""
    log = tmp_path / "log.ndjson"
    assert site.sample(tmp_path, "--uris", url_list, "--log", str(log)).returncode == 0
    responses = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["outcome"] for each in responses].count("miss") == 3
    assert responses[0] | {"time": "", "duration_ms": 0} == {
        "time": "", "archive": "p", "uri": f"{SITE}/", "endpoint": "timemap", "outcome": "hit", "reason": "requested",
        "key": "com,example)/", "mementos": 2, "first": "20140210000001", "last": "20160210000001", "duration_ms": 0,
        "from_cache": False,
    }  # fmt: skip
    rolled, excluded = tmp_path / "rolled.ukvs", tmp_path / "excluded.ukvs"
    assert unlost("map", "compact", str(tmp_path / "m.ukvs"), "--rollup", "com,*", "-o", str(rolled)).returncode == 0
    assert unlost("map", "exclude", str(rolled), "--misses", str(log), "-o", str(excluded)).returncode == 0
    assert any(line.startswith("com,example)/missing 0 ") for line in rows(excluded))


def test_state_of_another_sample_needs_restart(site: SampledArchive, url_list: str, tmp_path: Path) -> None:
    """Other options and inputs are rejected."""
    assert site.sample(tmp_path, "--uris", url_list).returncode == 0
    other = tmp_path / "other.txt"
    other.write_text(f"{SITE}/gone\n")
    for arguments, archive, named in (
        (["--uris", str(other)], "p", "addresses was"),
        (["--uris", url_list], "m", "address was"),
        (["--uris", url_list, "--by", "language"], "p", "language was False and is True"),
    ):
        done = site.sample(tmp_path, *arguments, archive=archive)
        assert done.returncode == 2
        assert named in done.stderr.decode()
        assert b"--restart" in done.stderr
    done = site.sample(tmp_path, "--uris", str(other), "--restart")
    assert (done.returncode, rows(tmp_path / "m.ukvs")) == (0, ["* 1+", "com,example)/gone 1+"])


def test_invalid_options_are_rejected(
    site: SampledArchive,
    url_list: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before any request; neither a map nor a state is left."""
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    for code, arguments, archive, message in [
        (2, ["--uris", url_list], "x", "no archive `x` in the registry"),
        (2, [], "p", "expected either --uris, or --search and --terms"),
        (2, ["--uris", url_list, "--search", "x"], "p", "expected either --uris, or --search and --terms"),
        (2, ["--search", "x"], "p", "p has no full-text search that we know of. Those that have one: none"),
        (2, ["--search", "x", "--limit", "1"], "p", "--limit goes with --uris only"),
        (2, ["--uris", url_list, "--follow"], "p", "--follow goes with --search and --terms only"),
        (3, ["--uris", str(empty)], "p", "no address in it"),
        (3, ["--uris", str(tmp_path / "none")], "p", "cannot be read"),
        (2, ["--uris", url_list, "-o", "-"], "p", "say by --state"),
        (3, ["--uris", url_list, "-o", str(tmp_path / "no" / "m.ukvs")], "p", "no such folder"),
        (3, ["--uris", url_list, "--state", url_list], "p", "not the state of a sample: give another name"),
    ]:
        monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
        begin = ["map", "sample", "--archives", str(site.registry), "--archive", archive]
        # In this process: a dozen others would take as many seconds.
        assert run([*begin, "-o", str(tmp_path / "m.ukvs"), *arguments]) == code, arguments
        output = capsys.readouterr()
        assert (output.out, message in output.err) == ("", True), arguments
        assert not [path for path in tmp_path.iterdir() if path.name.startswith("m.ukvs")], arguments
    assert Path(url_list).read_text().startswith("# a sample")
    shipped = unlost("map", "sample", "--archive", "perma.cc", "--search", "x", "-o", str(tmp_path / "m.ukvs"))
    assert b"Those that have one: arquivo.pt\n" in shipped.stderr


def test_map_is_written_to_standard_output(site: SampledArchive, url_list: str, tmp_path: Path) -> None:
    """With its own state file."""
    done = unlost(
        "map", "sample", "--archives", str(site.registry), "--archive", "p", "--uris", url_list, "-o", "-",
        "--state", str(tmp_path / "s"), "--name", "Q", "--id", "http://q.example/", env=home(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[:5] == [
        '!context ["https://git.io/mementomap"]',
        '!fields {"keys": ["surt"], "values": ["frequency"]}',
        '!id {"uri": "http://q.example/"}',
        (
            '!meta {"type": "MementoMap", "version": 2, "rules": "wayback", "name": "Q", '
            '"sample": {"by": "uris", "asked": 9, "found": 6}, "row_bytes":                  114}'
        ),
        "* 7+",
    ]
