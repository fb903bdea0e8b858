"""`unlost uri`."""

import json
from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost.uri import MAX_URI_BYTES, POLICIES


def test_surt_prints_one_line_per_url() -> None:
    """Arguments and standard input mix in order; blank lines are skipped."""
    done = unlost("uri", "surt", "http://a.com/", "-", "http://d.com/", stdin=b"http://b.com/\n\r\n  http://c.com/ ")
    assert done.stdout.decode().split() == ["com,a)/", "com,b)/", "com,c)/", "com,d)/"]
    assert (done.returncode, done.stderr) == (0, b"")


def test_canonical_and_unsurt() -> None:
    """And back."""
    assert unlost("uri", "canonical", "https://WWW.a.com/B/").stdout == b"https://a.com/b\n"
    assert unlost("uri", "unsurt", "com,a)/b").stdout == b"http://a.com/b\n"
    assert unlost("uri", "surt", "--rules", "papers", "a.com/B").stdout == b"com,a)/B\n"


def test_keys_of_all_policies() -> None:
    """One line for each URL and policy."""
    done = unlost("uri", "keys", "--policy", "all", "http://a.co.uk/b?c", "uk,co,d)/")
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert [row[:2] for row in rows] == [
        [url, name] for url in ["http://a.co.uk/b?c", "uk,co,d)/"] for name in POLICIES
    ]
    assert ["http://a.co.uk/b?c", "DQry", "uk,co,a)/0/1/1"] in rows


def test_table_in_a_pipe_is_not_truncated() -> None:
    """It is as wide as its keys."""
    url = "http://a.com/" + "b" * 300
    done = unlost("uri", "keys", "--table", "--policy", "HxPx", url)
    assert "com,a)/" + "b" * 300 in done.stdout.decode()


def test_json_has_one_object_per_url() -> None:
    """Also for invalid URLs and other schemes."""
    done = unlost("uri", "surt", "--json", "http://a.com/", "http://a b/", "mailto:Me@a.com")
    good, bad, foreign = map(json.loads, done.stdout.splitlines())
    assert good == {"uri": "http://a.com/", "surt": "com,a)/"}
    assert (bad["uri"], bad["error"]["kind"]) == ("http://a b/", "bad-host")
    assert (foreign["uri"], foreign["error"]["scheme"]) == ("mailto:Me@a.com", "mailto")
    assert done.returncode == 2
    keys = json.loads(unlost("uri", "keys", "--json", "--policy", "DDom,H1P0", "a.com").stdout)
    assert keys == {"uri": "a.com", "keys": {"DDom": "com,a)/", "H1P0": "com)/"}}


def test_urls_of_other_schemes_are_unchanged() -> None:
    """They are reported; the exit code is 0."""
    done = unlost("uri", "surt", "mailto:Me@A.com", "dns:a.com", "ftp://A.com/B")
    assert done.stdout.decode().splitlines() == ["mailto:Me@A.com", "dns:a.com", "ftp://A.com/B"]
    assert done.stderr.count(b"not a web page") == 3
    assert done.returncode == 0


def test_invalid_urls_are_reported_and_skipped() -> None:
    """In one line each, with line number and reason, escaped for terminals."""
    invalid = [b"http://a b/", b"http://\x1b[31m/", b"http://\xff/", b"http://a.com:x/", b"http://"]
    done = unlost("uri", "surt", "-", stdin=b"\n".join([*invalid, b"http://good.com/%zz\xff"]))
    assert done.stdout == b"com,good)/%25zz%ff\n"
    lines = done.stderr.decode().splitlines()
    assert len(lines) == len(invalid)
    assert all(line.startswith(f"unlost: <stdin>:{i}: ") and line.isprintable() for i, line in enumerate(lines, 1))
    assert done.returncode == 5


def test_too_long_url_is_skipped() -> None:
    """It is shortened in the message."""
    done = unlost("uri", "surt", "-", stdin=b"http://a.com/\nhttp://b.com/" + b"x" * 10_000_000 + b"\nhttp://c.com/\n")
    assert done.stdout.split() == [b"com,a)/", b"com,c)/"]
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("unlost: <stdin>:2: http://b.com/xxx")
    assert line.endswith(f"too long: more than {MAX_URI_BYTES} bytes")
    assert len(line) < 250
    assert done.returncode == 5


def test_endless_line_is_rejected() -> None:
    """In bounded memory, with one message."""
    done = unlost("uri", "surt", "-", stdin=b"x" * 10_000_000)
    assert (done.stdout, done.stderr.count(b"\n"), done.returncode) == (b"", 1, 5)


def test_urls_of_other_schemes_keep_their_bytes() -> None:
    """As text and, escaped, as JSON."""
    address = "mailto:a\u00a0b\u200d".encode() + b"\xff\x1b"
    done = unlost("uri", "surt", "-", stdin=address)
    assert done.stdout == address + b"\n"
    (found,) = map(json.loads, unlost("uri", "surt", "--json", "-", stdin=address).stdout.splitlines())
    assert found["uri"].encode("utf-8", "surrogateescape") == address


def test_byte_order_mark_is_skipped() -> None:
    """Some editors write one."""
    assert unlost("uri", "surt", "-", stdin=b"\xef\xbb\xbfhttp://a.com/\nhttp://b.com/").stdout == b"com,a)/\ncom,b)/\n"


def test_repeated_url_has_repeated_tables() -> None:
    """One for each argument."""
    done = unlost("uri", "keys", "--table", "--policy", "DDom", "http://a.com/", "http://a.com/")
    assert done.stdout.decode().count("DDom") == 2


def test_invalid_utf8_arguments_are_read() -> None:
    """As bytes."""
    assert unlost("uri", "surt", b"http://a.com/\xfc").stdout == b"com,a)/%fc\n"


def test_unknown_policies_are_reported_and_skipped() -> None:
    """The exit code is 2."""
    done = unlost("uri", "keys", "--policy", "H1P0,NOPE,hxpx,H0P0", "http://a.com/b")
    assert [line.split("\t")[1] for line in done.stdout.decode().splitlines()] == ["H1P0", "HxPx"]
    assert [line.split(": ")[1] for line in done.stderr.decode().splitlines()] == ["NOPE", "H0P0"]
    assert done.returncode == 2
    assert unlost("uri", "keys", "--policy", "NOPE", "http://a.com/b").returncode == 2


def test_other_suffix_list_is_used(tmp_path: Path) -> None:
    """`--psl` takes a file in the format of publicsuffix.org."""
    newer = tmp_path / "list.dat"
    newer.write_text("// ===BEGIN ICANN DOMAINS===\ncom\na.com\n")
    done = unlost("uri", "keys", "--policy", "DDom", "--psl", str(newer), "http://c.b.a.com/")
    assert done.stdout.decode().split("\t")[2] == "com,a,b)/\n"
    icann = unlost("uri", "keys", "--policy", "DDom", "--suffixes", "icann", "http://me.blogspot.com/")
    assert icann.stdout.decode().split("\t")[2] == "com,blogspot)/\n"


@pytest.mark.parametrize("content", [None, "not a list"])
def test_invalid_suffix_list_is_rejected(tmp_path: Path, content: str | None) -> None:
    """Missing or invalid: one line with the file."""
    file = tmp_path / "list.dat"
    if content is not None:
        file.write_text(content)
    done = unlost("uri", "keys", "--psl", str(file), "http://a.com/")
    assert done.returncode == 3
    assert done.stderr.decode().startswith(f"unlost: {file}: ")
    assert len(done.stderr.splitlines()) == 1
