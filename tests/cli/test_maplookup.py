"""`unlost map lookup`."""

import gzip
import json
from pathlib import Path

from tests.cli.maps import rows
from tests.cli.run import unlost

SAMPLE = str(Path(__file__).parents[2] / "docs" / "examples" / "sample.ukvs")


def test_a_line_for_each_address() -> None:
    """Address, answer, key and frequency between tabs; `-` where the map has nothing to say."""
    done = unlost("map", "lookup", SAMPLE, "https://arxiv.org/abs/1", "org,arxiv)/pdf/1", "http://a.org/")
    assert done.stdout.decode().splitlines() == [
        "https://arxiv.org/abs/1\tyes\torg,arxiv)/*\t2500~/900",
        "org,arxiv)/pdf/1\tno\torg,arxiv)/pdf/*\t0",
        "http://a.org/\tno\t-\t-",
    ]
    assert (done.returncode, done.stderr) == (0, b"")


def test_json_has_an_object_for_each_address() -> None:
    """Good and bad ones; what is not known is null."""
    done = unlost("map", "lookup", "--json", SAMPLE, "http://a.com/b?c", "http://a.org/", "http://a b/")
    held, unknown, bad = map(json.loads, done.stdout.splitlines())
    assert held == {
        "uri": "http://a.com/b?c", "key": "com,a)/b", "held": True, "matched": "com,*", "frequency": "10000+"
    }  # fmt: skip
    assert unknown == {"uri": "http://a.org/", "key": "org,a)/", "held": False, "matched": None, "frequency": None}
    assert bad["error"]["kind"] == "bad-host"
    assert done.returncode == 2


def test_lists_are_read_however_they_are_stored(tmp_path: Path) -> None:
    """Plain, compressed or from standard input, with blank lines and comments passed over."""
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


def test_bad_addresses_get_one_line_each_and_the_rest_goes_on(tmp_path: Path) -> None:
    """With the list's name and line; what is no web page is noted and no error."""
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


def test_a_damaged_list_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """And said to be damaged."""
    file = tmp_path / "list.gz"
    file.write_bytes(gzip.compress(b"http://a.com/\n" * 1000)[:-9])
    done = unlost("map", "lookup", SAMPLE, "--batch", str(file))
    assert b"http://a.com/\tyes" in done.stdout
    assert b"truncated" in done.stderr
    assert done.returncode == 5


def test_compressed_maps_are_read(tmp_path: Path) -> None:
    """In memory, without being asked to."""
    file = tmp_path / "a.ukvs.gz"
    file.write_bytes(gzip.compress(Path(SAMPLE).read_bytes()))
    assert unlost("map", "lookup", str(file), "http://a.com/").stdout == b"http://a.com/\tyes\tcom,*\t10000+\n"


def test_problems_of_the_map_are_told(tmp_path: Path) -> None:
    """What is no map, what is missing, and headers that cannot be read."""
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


def test_nothing_to_look_up_is_an_error() -> None:
    """Exit code 2 says that the call was not right."""
    done = unlost("map", "lookup", SAMPLE)
    assert done.returncode == 2
    assert b"--batch" in done.stderr


def test_addresses_for_keys_keep_their_paths(tmp_path: Path) -> None:
    """A map whose lines are addresses without a scheme is brought to keys, whole, and once: then it stays as it is."""
    old, new, again = (tmp_path / name for name in ("old.ukvs", "new.ukvs", "again.ukvs"))
    old.write_text('!context ["https://git.io/mementomap"]\ncom,a)/ 1\nexample.org/t/* 1\nexample.org:8080/r/s 1\n')
    for source, target in ((old, new), (new, again)):
        done = unlost("map", "build", str(source), "-o", str(target))
        assert done.returncode == 0, done.stderr
    assert rows(new) == ["* 3", "com,a)/ 1", "org,example)/t/* 1", "org,example:8080)/r/s 1"]
    assert rows(again) == rows(new)
    found = unlost("map", "lookup", str(new), "http://example.org:8080/r/s", "http://example.org/t/u")
    assert [line.split("\t")[1] for line in found.stdout.decode().splitlines()] == ["yes", "yes"]
