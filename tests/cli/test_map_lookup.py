"""`unlost map lookup`."""

import gzip
import json
from pathlib import Path

from tests.cli.maps import rows
from tests.cli.run import unlost

SAMPLE = str(Path(__file__).parents[2] / "docs" / "examples" / "sample.ukvs")


def test_lookup_prints_one_line_per_url() -> None:
    """URL, answer, key and frequency as TSV; `-` if the map has no matching key."""
    done = unlost("map", "lookup", SAMPLE, "https://arxiv.org/abs/1", "org,arxiv)/pdf/1", "http://a.org/")
    assert done.stdout.decode().splitlines() == [
        "https://arxiv.org/abs/1\tyes\torg,arxiv)/*\t2500~/900",
        "org,arxiv)/pdf/1\tno\torg,arxiv)/pdf/*\t0",
        "http://a.org/\tno\t-\t-",
    ]
    assert (done.returncode, done.stderr) == (0, b"")


def test_json_has_one_object_per_url() -> None:
    """Also for invalid URLs; unknown values are null."""
    done = unlost("map", "lookup", "--json", SAMPLE, "http://a.com/b?c", "http://a.org/", "http://a b/")
    held, unknown, bad = map(json.loads, done.stdout.splitlines())
    assert held == {
        "uri": "http://a.com/b?c", "key": "com,a)/b", "held": True, "matched": "com,*", "frequency": "10000+"
    }  # fmt: skip
    assert unknown == {"uri": "http://a.org/", "key": "org,a)/", "held": False, "matched": None, "frequency": None}
    assert bad["error"]["kind"] == "bad-host"
    assert done.returncode == 2


def test_url_lists_are_read_in_all_forms(tmp_path: Path) -> None:
    """Plain, compressed or from standard input; blank lines and comments are skipped."""
    text = b"\xef\xbb\xbfhttp://a.com/\r\n\n# a comment\n http://b.org/ "
    plain, packed = tmp_path / "list", tmp_path / "list.gz"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    expected = b"http://a.com/\tyes\tcom,*\t10000+\nhttp://b.org/\tno\t-\t-\n"
    assert unlost("map", "lookup", SAMPLE, "--batch", str(plain)).stdout == expected
    assert unlost("map", "lookup", SAMPLE, "--batch", str(packed)).stdout == expected
    assert unlost("map", "lookup", SAMPLE, "--batch", "-", stdin=text).stdout == expected
    assert unlost("map", "lookup", SAMPLE, "-", stdin=text).stdout == expected
    both = unlost("map", "lookup", SAMPLE, "--batch", str(plain), "http://c.net/").stdout
    assert both == b"http://c.net/\tno\t-\t-\n" + expected


def test_invalid_urls_are_reported_and_skipped(tmp_path: Path) -> None:
    """With file and line; URLs of other schemes are noted without an error."""
    file = tmp_path / "list"
    file.write_bytes(b"http://a b/\nhttp://a.com/\nhttp://\x1b[31m/\n")
    done = unlost("map", "lookup", SAMPLE, "--batch", str(file))
    assert done.stdout == b"http://a.com/\tyes\tcom,*\t10000+\n"
    first, second = done.stderr.decode().splitlines()
    assert first.startswith(f"unlost: {file}:1: http://a b/: bad host")
    assert second.startswith(f"unlost: {file}:3: ")
    assert second.isprintable()
    assert done.returncode == 5
    foreign = unlost("map", "lookup", SAMPLE, "dns:a.com")
    assert (foreign.stdout, foreign.returncode) == (b"", 0)
    assert b"not a web page" in foreign.stderr


def test_truncated_list_is_read_as_far_as_possible(tmp_path: Path) -> None:
    """The damage is reported."""
    file = tmp_path / "list.gz"
    file.write_bytes(gzip.compress(b"http://a.com/\n" * 1000)[:-9])
    done = unlost("map", "lookup", SAMPLE, "--batch", str(file))
    assert b"http://a.com/\tyes" in done.stdout
    assert b"truncated" in done.stderr
    assert done.returncode == 5


def test_compressed_maps_are_read(tmp_path: Path) -> None:
    """In memory."""
    file = tmp_path / "a.ukvs.gz"
    file.write_bytes(gzip.compress(Path(SAMPLE).read_bytes()))
    assert unlost("map", "lookup", str(file), "http://a.com/").stdout == b"http://a.com/\tyes\tcom,*\t10000+\n"


def test_unreadable_maps_are_reported(tmp_path: Path) -> None:
    """A missing file, a file that is not a map, unreadable headers."""
    file = tmp_path / "a.ukvs"
    done = unlost("map", "lookup", str(file), "http://a.com/")
    assert (done.returncode, done.stderr.decode()) == (
        3,
        f"unlost: {file}: cannot be read: No such file or directory: check the name\n",
    )
    file.write_text("nothing\n")
    assert b"not a map" in unlost("map", "lookup", str(file), "http://a.com/").stderr
    file.write_text("!meta {\ncom,* 1\n")
    done = unlost("map", "lookup", str(file), "http://a.com/")
    assert b"a.ukvs:1 (byte 0): bad-header" in done.stderr
    assert (done.stdout, done.returncode) == (b"", 3)
    file.write_text("!more {}\ncom,* 1\n")
    done = unlost("map", "lookup", str(file), "http://a.com/")
    assert b"unknown-header" in done.stderr
    assert (done.stdout, done.returncode) == (b"http://a.com/\tyes\tcom,*\t1\n", 0)


def test_lookup_needs_a_url() -> None:
    """Exit code 2."""
    done = unlost("map", "lookup", SAMPLE)
    assert done.returncode == 2
    assert b"--batch" in done.stderr


def test_keys_that_are_urls_are_converted_once(tmp_path: Path) -> None:
    """URLs without a scheme become keys with their paths; the result stays the same when built again."""
    old, new, again = (tmp_path / name for name in ("old.ukvs", "new.ukvs", "again.ukvs"))
    old.write_text('!context ["https://git.io/mementomap"]\ncom,a)/ 1\nexample.org/t/* 1\nexample.org:8080/r/s 1\n')
    for source, target in ((old, new), (new, again)):
        done = unlost("map", "build", str(source), "-o", str(target))
        assert done.returncode == 0, done.stderr
    assert rows(new) == ["* 3", "com,a)/ 1", "org,example)/t/* 1", "org,example:8080)/r/s 1"]
    assert rows(again) == rows(new)
    found = unlost("map", "lookup", str(new), "http://example.org:8080/r/s", "http://example.org/t/u")
    assert [line.split("\t")[1] for line in found.stdout.decode().splitlines()] == ["yes", "yes"]
