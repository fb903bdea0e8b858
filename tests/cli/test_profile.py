"""`unlost profile`."""

import json
from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost import uri

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PAGES, PAPER = str(EXAMPLES / "bbc.txt"), str(EXAMPLES / "ukwa.cdxj")


def test_all_policies_write_one_profile_each(tmp_path: Path) -> None:
    """The 23 profiles equal those of single policies."""
    folder = tmp_path / "profiles"
    done = unlost("profile", "build", PAGES, "--policy", "all", "-o", str(folder), "--name", "Seven pages")
    assert (done.returncode, done.stderr) == (0, b"")
    assert {file.name for file in folder.iterdir()} == {f"{name}.cdxj" for name in uri.POLICIES}
    for name in ["H1P0", "HxPx", "DIni", "URIR"]:
        one = tmp_path / "one"
        unlost("profile", "build", PAGES, "--policy", name.lower(), "-o", str(one), "--name", "Seven pages")
        assert one.read_bytes() == (folder / f"{name}.cdxj").read_bytes()
    done = unlost("profile", "build", PAGES, "--policy", "H1P0,hxpx", "-o", str(folder), "--format", "json")
    assert done.returncode == 0
    assert sum(value["frequency"] for value in json.loads((folder / "HxPx.json").read_text())["profile"].values()) == 7


def test_suffix_list_is_selectable(tmp_path: Path) -> None:
    """Another list, or only the ICANN section, determines registered domains, also for look-ups."""
    pages, psl, out = tmp_path / "a.txt", tmp_path / "psl.dat", tmp_path / "p"
    pages.write_text("http://a.b.blogspot.com/\n")
    psl.write_text("// ===BEGIN ICANN DOMAINS===\ncom\nb.blogspot.com\n// ===END ICANN DOMAINS===\n")
    for options, key in [
        ([], "com,blogspot,b)/"),
        (["--suffixes", "icann"], "com,blogspot)/"),
        (["--psl", str(psl)], "com,blogspot,b,a)/"),
    ]:
        assert unlost("profile", "build", str(pages), "--policy", "DDom", "-o", str(out), *options).returncode == 0
        more = options if "--psl" in options else []
        found = unlost("profile", "lookup", str(out), "http://a.b.blogspot.com/x", "--json", *more)
        assert json.loads(found.stdout) == {
            "asked": "http://a.b.blogspot.com/x",
            "key": key,
            "frequency": 1,
            "spread": 1,
            "keys": 1,
        }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["build", PAGES, "--policy", "H0P1", "-o", "{}/p"], 2, "H0P1: unknown policy"),
        (["build", PAGES, "--policy", "H1P0", "-o", "{}/p", "--id", "a\n@b"], 2, "expected an id without white space"),
        (["build", PAGES, "--policy", "H1P0", "-o", "{}/none/p"], 3, "no such folder"),
        (["build", PAGES, "--policy", "all", "-o", "{}/none/p"], 3, "no such folder"),
        (["build", PAGES, "--policy", "all", "-o", PAPER], 3, "not a folder, but several policies need one"),
        (["build", "{}/none", "--policy", "all", "-o", "{}/p"], 3, "none: cannot be read: No such file"),
        (["build", PAPER, "--policy", "all", "-o", "{}/p"], 3, "expected lines of CDX or CDXJ"),
        (["merge", PAPER, PAGES, "-o", "{}/p"], 3, "bbc.txt: not a profile"),
        (["merge", PAPER, "-o", "{}/none/p"], 3, "no such folder"),
        (["lookup", PAPER], 2, "expected a URL, or --key"),
        (["lookup", PAPER, "http://a b/"], 2, "bad host"),
        (["check", PAGES], 3, "bbc.txt: not a profile"),
        (["to-map", PAGES, "-o", "{}/p"], 3, "bbc.txt: not a profile"),
    ],
)
def test_invalid_input_is_rejected(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    """In one line, with the exit code of its kind, and no file is left."""
    done = unlost("profile", *(argument.format(tmp_path) for argument in arguments))
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert done.stderr.count(b"\n") == 1
    assert not [*tmp_path.iterdir()]


def test_bad_lines_are_reported(tmp_path: Path) -> None:
    """The others are written, and the exit code is 5."""
    pages, out = tmp_path / "a.txt", tmp_path / "p"
    pages.write_text("http://a.com/\nhttp://a b/\ndns:a.com\n")
    done = unlost("profile", "build", str(pages), "--policy", "H1P0", "-o", str(out))
    assert done.returncode == 5
    assert done.stderr.startswith(b"unlost: once an address whose host cannot exist, first: ")
    assert out.read_text().endswith('com)/ {"frequency": 1, "spread": 1}\n')


def test_check_of_a_bad_profile_exits_with_1(tmp_path: Path) -> None:
    """As text and as JSON."""
    file = tmp_path / "p"
    file.write_text('@about {"type": "urikey#H1P0"}\nuk)/ {"frequency": 7}\ncom,a)/ {"frequency": 1}\n')
    done = unlost("profile", "check", str(file))
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[:2] == ["H1P0, rules wayback", "2 keys, 8 captures, a spread of 1 at most"]
    assert b"once a line that belongs before the one above it, first: " in done.stdout
    assert b"once a key that no address has, first: " in done.stdout
    done = unlost("profile", "check", "--json", str(file))
    found = json.loads(done.stdout)
    assert (done.returncode, found["sound"], [*found["problems"]]) == (1, False, ["bad-key", "unsorted"])


def test_urls_are_read_from_standard_input() -> None:
    """As by `unlost uri`."""
    done = unlost("profile", "lookup", PAPER, "-", stdin=b"http://bbc.co.uk/images/1\n\nhttp://a.example/\n")
    assert done.returncode == 0
    assert (
        done.stdout
        == b"http://bbc.co.uk/images/1\tuk,co,bbc)/images\t152\t3\t1\nhttp://a.example/\texample,a)/\t0\t0\t0\n"
    )


def test_dash_writes_to_standard_output(tmp_path: Path) -> None:
    """Several policies are rejected."""
    urls, file = tmp_path / "urls.txt", tmp_path / "p.cdxj"
    urls.write_text("http://a.com/x\nhttp://b.com/\n")
    built = unlost("profile", "build", str(urls), "--policy", "HxP1", "-o", "-")
    assert (built.returncode, built.stdout.count(b'"frequency": 1')) == (0, 2), built.stderr
    file.write_bytes(built.stdout)
    assert unlost("profile", "merge", str(file), "-o", "-").stdout == built.stdout
    assert unlost("profile", "to-map", str(file), "-o", "-").stdout.endswith(b"* 2\ncom,a)/x/* 1\ncom,b)/ 1\n")
    several = unlost("profile", "build", str(urls), "--policy", "all", "-o", "-")
    assert (several.returncode, b"give a folder" in several.stderr) == (2, True), several.stderr


def test_profile_in_a_pipe_is_rejected(tmp_path: Path) -> None:
    """Its header would be consumed before the lines are read."""
    text = b'@about {"type": "urikey#H3P1"}\ncom,a)/x {"frequency": 1, "spread": 1}\n'
    output = str(tmp_path / "out")
    for arguments in (
        ["check", "/dev/stdin"],
        ["merge", "/dev/stdin", "-o", output],
        ["to-map", "/dev/stdin", "-o", output],
    ):
        done = unlost("profile", *arguments, stdin=text)
        assert (done.returncode, b"/dev/stdin: not a regular file" in done.stderr) == (3, True), done.stdout
