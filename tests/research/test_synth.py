"""Made-up indexes: the same everywhere, sorted, sound, and of the shape that the papers found."""

import gzip
import hashlib
import json
import re
import resource
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import UNLOST, unlost
from tests.real_data import DATA, urls
from unlost import dates, uri
from unlost.errors import InputError, UsageError
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, write_synthetic_index, write_synthetic_index_to
from unlost.text_lines import read_lines

SHAPE = 300_000  # lines: enough for the shape of paths, few for that of hosts


def made(plan: SynthIndexOptions, problems: Problems | None = None) -> list[bytes]:
    """Return the lines of an index."""
    file = BytesIO()
    write_synthetic_index_to(plan, file, problems or Problems())
    return file.getvalue().splitlines(keepends=True)


def key(line: bytes) -> str:
    """Return a line's first column."""
    return line.split(b" ", 1)[0].decode()


def url(line: bytes) -> str:
    """Return a line's address."""
    address: str = json.loads(line.split(b" ", 2)[2])["url"]
    return address


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """Return an index to look at."""
    return made(SynthIndexOptions(SHAPE, seed=1))


@pytest.fixture(scope="module")
def pages(lines: list[bytes]) -> Counter[str]:
    """Return the captures of each page."""
    return Counter(map(key, lines))


def test_the_same_plan_makes_the_same_bytes() -> None:
    """On every machine: where this fails without a change of the generator, something differs between machines.

    Whoever changes the generator on purpose changes this, and says so in the changelog: benches before and after
    cannot be compared.
    """
    index = b"".join(made(SynthIndexOptions(5_000, seed=42)))
    assert hashlib.sha256(index).hexdigest() == "7f4212cbd33e77e26f440518e6921ce403ababb8cd220ea8c60dab90657946a2"
    assert index != b"".join(made(SynthIndexOptions(5_000, seed=43)))


@pytest.mark.parametrize("count", [1, 2, 26, 27, 1_000, 12_345])
def test_there_are_exactly_as_many_lines_as_asked_for(count: int) -> None:
    """Also fewer than there are top-level domains."""
    assert len(made(SynthIndexOptions(count, seed=count))) == count


def test_lines_are_sorted_and_different(lines: list[bytes]) -> None:
    """By bytes, each line behind the one before."""
    assert len(lines) == SHAPE
    assert all(a < b for a, b in pairwise(lines))


def test_keys_are_those_of_the_addresses(lines: list[bytes]) -> None:
    """The key column is what `unlost.uri` makes of the address, and some addresses are spelt otherwise."""
    addresses = [url(line) for line in lines]
    assert uri.surt_many(addresses) == [key(line) for line in lines]
    assert any(address != address.lower() for address in addresses)
    assert any(address.startswith("https:") for address in addresses)


def test_rows_have_what_pywb_writes(lines: list[bytes]) -> None:
    """Strings only, in pywb's order; dates that exist; about 320 bytes."""
    for line in lines[::50]:
        _, date, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        assert list(fields) == ["url", "mime", "status", "digest", "length", "offset", "filename"]
        assert all(isinstance(value, str) for value in fields.values())
        assert dates.from_datetime(dates.to_datetime(date)) == date
    assert 300 < sum(map(len, lines)) / SHAPE < 340


def test_index_check_finds_nothing_wrong(tmp_path: Path) -> None:
    """Our own reader reads every line."""
    file = tmp_path / "a.cdxj"
    write_synthetic_index(SynthIndexOptions(20_000), file, Problems())
    done = unlost("index", "check", str(file))
    assert (done.returncode, done.stdout) == (0, b"20000 captures, 0 of them not web pages\nsorted\n")


def test_captures_and_queries_are_as_the_papers_say(pages: Counter[str]) -> None:
    """2.77 captures a page, one for at least half of them, a few with very many; 29.4 % of the pages have a query."""
    assert SHAPE / len(pages) == pytest.approx(2.77, rel=0.03)
    assert sorted(pages.values())[len(pages) // 2] == 1
    assert max(pages.values()) > 200
    assert sum("?" in page for page in pages) / len(pages) == pytest.approx(0.294, abs=0.02)


def test_statuses_years_and_domains_are_as_the_papers_say(lines: list[bytes]) -> None:
    """Shares of Table 6 and Table 1 of the second paper, in percent of all captures."""
    rows = [json.loads(line.split(b" ", 2)[2]) for line in lines[::3]]
    classes = Counter(row["status"][0] for row in rows)
    for status, share in {"2": 79.4, "3": 6.3, "4": 13.6, "5": 0.6}.items():
        assert classes[status] / len(rows) * 100 == pytest.approx(share, abs=0.7), status
    html = sum(row["mime"] == "text/html" and row["status"] == "200" for row in rows)
    assert html / len(rows) * 100 == pytest.approx(54.3, abs=3)
    years = Counter(line.split(b" ", 2)[1][:4] for line in lines)
    for year, share in {b"2009": 7.2, b"2014": 10.9, b"2016": 27.5}.items():
        assert years[year] / SHAPE * 100 == pytest.approx(share, abs=0.5), year
    tops = Counter(key(line).split(",", 1)[0] for line in lines)
    for top, share in {"pt": 68.27, "com": 19.64, "eu": 4.26, "br": 0.47}.items():
        assert tops[top] / SHAPE * 100 == pytest.approx(share, abs=0.01), top


def mean_children(branches: Iterable[list[str]]) -> list[float]:
    """Return the mean number of children of parents, from those of the first segment on."""
    nodes: defaultdict[int, set[tuple[str, ...]]] = defaultdict(set)
    for segments in branches:
        for depth in range(1, len(segments) + 1):
            nodes[depth].add(tuple(segments[:depth]))
    return [len(nodes[depth]) / len({node[:-1] for node in nodes[depth]}) for depth in sorted(nodes)][1:]


def test_trees_branch_as_the_papers_say(pages: Counter[str]) -> None:
    """Mean children of Table 8 and depths of Table 7, of paths."""
    keys = {page.split("?")[0] for page in pages}
    paths = mean_children([[host, *filter(None, path.split("/"))] for host, path in (k.split(")/") for k in keys)])
    assert paths[0] == pytest.approx(25.00, rel=0.25)
    for depth, mean in enumerate([7.25, 4.96, 3.26, 3.29, 2.70, 2.48, 2.09, 2.01], start=1):
        assert paths[depth] == pytest.approx(mean, rel=0.1 if depth < 6 else 0.3), f"P{depth}"
    depths = Counter(page.split(")")[1].count("/") if not page.endswith(")/") else 0 for page in keys)
    for depth, share in enumerate([0.4, 9.9, 19.8, 29.4, 15.3, 11.2, 6.0, 4.0, 1.9]):  # Table 7, paths, percent
        assert depths[depth] / len(keys) * 100 == pytest.approx(share, rel=0.3, abs=0.3), f"P{depth}"


class HostsOnly:
    """A file that keeps the hosts of an index."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()

    def write(self, data: bytes) -> None:
        """Take some whole lines."""
        self.hosts.update(re.findall(r"^[^)]+", data.decode(), re.MULTILINE))


def test_hosts_branch_as_the_papers_say() -> None:
    """Mean children of Table 8, roughly: three million lines have some two hundred domains with hosts below them."""
    file = HostsOnly()
    write_synthetic_index_to(SynthIndexOptions(3_000_000, seed=1), file, Problems())
    assert len(file.hosts) == pytest.approx(3_000_000 / 2.77 * 0.706 / 195, rel=0.3)
    _, h3, h4, *_ = mean_children(host.split(",") for host in file.hosts)
    assert h3 == pytest.approx(8.53, rel=0.4)
    assert h4 == pytest.approx(8.95, rel=0.4)


def test_byte_order_and_tree_order_differ(pages: Counter[str]) -> None:
    """There are pages with a sibling `-x`, a sibling `.html`, children and queries: what byte order interleaves."""
    keys = {page.split("?")[0] for page in pages}
    parents = {each.rpartition("/")[0] for each in keys} & keys
    pages_with_html = {each.removesuffix(".html") for each in keys if each.endswith(".html")}
    assert len(parents & pages_with_html) > 3


@pytest.mark.parametrize(("lines_wanted", "size"), [(20_000, 1), (20_000, 5_000), (20_000, 20_000), (60_000, 9_000)])
def test_the_largest_host_has_the_keys_asked_for(lines_wanted: int, size: int) -> None:
    """So many different pages without query, whatever else there is."""
    index = made(SynthIndexOptions(lines_wanted, seed=5, largest_host=size))
    assert len(index) == lines_wanted
    assert all(a < b for a, b in pairwise(index))
    keys = {key(line).split("?")[0] for line in index}
    sizes = Counter(each.split(")")[0] for each in keys)
    assert size in sizes.values()
    if size >= 5_000:
        assert max(sizes.values()) == size


def test_unsorted_is_the_same_lines_in_another_order() -> None:
    """A permutation, and not a mild one; also where more lines come than wait."""
    index = made(SynthIndexOptions(300_000, seed=3))
    shuffled = made(SynthIndexOptions(300_000, seed=3, shuffled=True))
    assert sorted(shuffled) == index
    assert sum(a > b for a, b in pairwise(shuffled)) > 100_000


LIST = """# pages

http://www.B.com/x?b=2&a=1\r
http://b.com/x?a=1&b=2
https://a.org/é"\\x
mailto:a@b.org
http://a b/
"""


@pytest.mark.parametrize("count", [1, 2, 3, 40, 5_000])
def test_a_list_is_captured(tmp_path: Path, count: int) -> None:
    """Only its pages, all of them if there are lines enough, keys as always; what is no address is counted."""
    file = tmp_path / "list.txt"
    file.write_text(LIST)
    problems = Problems()
    index = made(SynthIndexOptions(count, seed=1, urls=file), problems)
    assert len(index) == count
    assert all(a < b for a, b in pairwise(index))
    assert [uri.surt(url(line)) for line in index] == [key(line) for line in index]
    keys = {key(line) for line in index}
    assert keys <= {"com,b)/x?a=1&b=2", 'org,a)/%c3%a9"/x'}
    assert len(keys) == 2 or count < 4
    assert problems.counts == {"foreign-scheme": 1, "bad-host": 1}
    assert problems.first["bad-host"].line == 7
    if count == 5_000:
        assert len({url(line) for line in index}) == 3


def test_a_list_may_be_a_column_and_compressed(tmp_path: Path) -> None:
    """As the real lists are."""
    file = tmp_path / "list.tsv.gz"
    file.write_bytes(gzip.compress(b"1\tx\thttp://a.com/\n2\tx\n3\ty\thttp://b.com/\n4\ty\t\x01\n"))
    problems = Problems()
    index = made(SynthIndexOptions(100, urls=file, column=3), problems)
    assert {key(line) for line in index} == {"com,a)/", "com,b)/"}
    assert problems.counts == {"no-column": 1, "bad-uri": 1}


def test_a_short_index_of_a_long_list_is_a_sample(tmp_path: Path) -> None:
    """Pages from all over the list, with as many captures as usual."""
    file = tmp_path / "list.txt"
    file.write_text("".join(f"http://host{n:05}.com/\n" for n in range(10_000)))
    index = made(SynthIndexOptions(2_770, seed=1, urls=file))
    hosts = sorted({int(key(line)[8:13]) for line in index})
    assert len(hosts) == 1_000
    assert (hosts[0] < 100, hosts[-1] > 9_900) == (True, True)


@pytest.mark.real_data
def test_a_real_list_is_captured_with_its_keys() -> None:
    """833,509 addresses of whole hosts: every page is there, and every key is its address's."""
    index = made(SynthIndexOptions(2_500_000, seed=1, urls=DATA / "urls" / "eot2024-hosts.txt.gz"))
    sample = index[::25]
    assert uri.surt_many([url(line) for line in sample]) == [key(line) for line in sample]
    expected = {made_key for made_key in uri.surt_many(urls()[:833_509]) if isinstance(made_key, str)}
    assert {key(line) for line in index} == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"lines": 0},
        {"lines": 10**13},
        {"lines": 1, "seed": -1},
        {"lines": 1, "seed": 2**64},
        {"lines": 1, "column": 1},
        {"lines": 1, "column": 0, "urls": "x"},
        {"lines": 5, "largest_host": 6},
        {"lines": 5, "largest_host": 0},
        {"lines": 5, "largest_host": 1, "urls": "x"},
    ],
)
def test_impossible_plans_are_refused(wrong: dict[str, Any]) -> None:
    """Before anything is made, as a mistake in what was asked for."""
    with pytest.raises(UsageError):
        SynthIndexOptions(**wrong)


def test_a_list_without_addresses_is_refused(tmp_path: Path) -> None:
    """One that is missing, too; nothing is written."""
    (tmp_path / "empty").write_text("# nothing\n")
    for name in ("none", "empty"):
        with pytest.raises(InputError):
            write_synthetic_index(SynthIndexOptions(5, urls=tmp_path / name), tmp_path / "out", Problems())
    assert not (tmp_path / "out").exists()


def text_of(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file, however it is compressed."""
    problems = Problems()
    for line in read_lines(file, problems):
        yield line.text + b"\n"
    assert problems.total == 0


@pytest.mark.parametrize("name", ["a.cdxj", "a.cdxj.gz", "a.cdxj.zst"])
def test_the_ending_tells_the_compression(tmp_path: Path, name: str) -> None:
    """The same lines, in fewer bytes."""
    done = unlost("synth", "index", "--lines", "5000", "--seed", "42", "-o", str(tmp_path / name))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    plain = made(SynthIndexOptions(5_000, seed=42))
    assert list(text_of(tmp_path / name)) == plain
    assert ((tmp_path / name).stat().st_size < sum(map(len, plain)) / 2) == (name != "a.cdxj")


def test_the_command_writes_to_standard_output() -> None:
    """With `-o -`, not compressed."""
    done = unlost("synth", "index", "--lines", "100", "--largest-host", "7", "--unsorted", "-o", "-")
    assert done.stdout.splitlines(keepends=True) == made(SynthIndexOptions(100, largest_host=7, shuffled=True))


def test_the_command_says_what_a_list_lacks(tmp_path: Path) -> None:
    """The rest is written; the exit code is 3."""
    file = tmp_path / "list.txt"
    file.write_text(LIST)
    done = unlost("synth", "index", "--lines", "9", "--urls", str(file), "-o", "-")
    assert (done.returncode, len(done.stdout.splitlines())) == (5, 9)
    assert f"unlost: once an address whose host cannot exist, first: {file}:7".encode() in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--lines", "0", "-o", "a"], 2),
        (["--lines", "9", "--column", "2", "-o", "a"], 2),
        (["--lines", "9", "--largest-host", "10", "-o", "a"], 2),
        (["--lines", "9", "--urls", "none.txt", "-o", "a"], 3),
        (["--lines", "9", "-o", "none/a"], 3),
        (["--lines", "9", "-o", "/dev/full"], 3),
    ],
)
def test_bad_input_is_told_in_one_line(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its exit code, and nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    done = unlost("synth", "index", *arguments)
    assert (done.returncode, list(tmp_path.iterdir())) == (code, [])
    assert b"Traceback" not in done.stderr
    assert done.stderr


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """What stood under the name stays."""
    target = tmp_path / "a.cdxj"
    target.write_bytes(b"old\n")
    limit = 3 << 20

    def with_little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [UNLOST, "synth", "index", "--lines", "100000", "-o", target],
        capture_output=True,
        check=False,
        preexec_fn=with_little_room,
        timeout=60,
    )
    assert done.returncode == 3
    assert b"too large" in done.stderr
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old\n"]


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    """In the middle of a long run, at once."""
    with subprocess.Popen(
        [UNLOST, "synth", "index", "--lines", "1000000000", "-o", tmp_path / "a.cdxj"], stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and not any(file.stat().st_size for file in tmp_path.iterdir()):
            pass
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
    assert (process.returncode, list(tmp_path.iterdir())) == (130, [])
    assert b"interrupted" in message


def test_a_reader_that_leaves_ends_it() -> None:
    """`| head` is no error worth a message."""
    with subprocess.Popen(
        [UNLOST, "synth", "index", "--lines", "1000000000", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 141)
