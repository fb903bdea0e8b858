"""Synthetic indexes: deterministic, sorted, valid, and distributed as published."""

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


def synthesize(plan: SynthIndexOptions, problems: Problems | None = None) -> list[bytes]:
    """Return the lines of an index."""
    file = BytesIO()
    write_synthetic_index_to(plan, file, problems or Problems())
    return file.getvalue().splitlines(keepends=True)


def key(line: bytes) -> str:
    """Return the first column of a line."""
    return line.split(b" ", 1)[0].decode()


def url(line: bytes) -> str:
    """Return the URL of a line."""
    address: str = json.loads(line.split(b" ", 2)[2])["url"]
    return address


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """Return an index."""
    return synthesize(SynthIndexOptions(SHAPE, seed=1))


@pytest.fixture(scope="module")
def pages(lines: list[bytes]) -> Counter[str]:
    """Return the number of captures of each page."""
    return Counter(map(key, lines))


def test_equal_options_give_equal_bytes() -> None:
    """On every machine: a failure without a change of the generator is a platform difference.

    An intended change of the generator updates the digest and is noted in the changelog: benchmarks before and after
    are not comparable.
    """
    index = b"".join(synthesize(SynthIndexOptions(5_000, seed=42)))
    assert hashlib.sha256(index).hexdigest() == "7f4212cbd33e77e26f440518e6921ce403ababb8cd220ea8c60dab90657946a2"
    assert index != b"".join(synthesize(SynthIndexOptions(5_000, seed=43)))


@pytest.mark.parametrize("count", [1, 2, 26, 27, 1_000, 12_345])
def test_number_of_lines_is_exact(count: int) -> None:
    """Also below the number of top-level domains."""
    assert len(synthesize(SynthIndexOptions(count, seed=count))) == count


def test_lines_are_sorted_and_unique(lines: list[bytes]) -> None:
    """By bytes."""
    assert len(lines) == SHAPE
    assert all(a < b for a, b in pairwise(lines))


def test_keys_are_surts_of_the_urls(lines: list[bytes]) -> None:
    """Some URLs are not canonical."""
    addresses = [url(line) for line in lines]
    assert uri.surt_many(addresses) == [key(line) for line in lines]
    assert any(address != address.lower() for address in addresses)
    assert any(address.startswith("https:") for address in addresses)


def test_rows_have_the_fields_of_pywb(lines: list[bytes]) -> None:
    """Strings in pywb's order; valid dates; about 320 bytes."""
    for line in lines[::50]:
        _, date, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        assert list(fields) == ["url", "mime", "status", "digest", "length", "offset", "filename"]
        assert all(isinstance(value, str) for value in fields.values())
        assert dates.from_datetime(dates.to_datetime(date)) == date
    assert 300 < sum(map(len, lines)) / SHAPE < 340


def test_index_check_accepts_the_index(tmp_path: Path) -> None:
    """Every line is read."""
    file = tmp_path / "a.cdxj"
    write_synthetic_index(SynthIndexOptions(20_000), file, Problems())
    done = unlost("index", "check", str(file))
    assert (done.returncode, done.stdout) == (0, b"20000 captures, 0 of them not web pages\nsorted\n")


def test_captures_and_queries_match_the_papers(pages: Counter[str]) -> None:
    """2.77 captures a page, one for at least half of them, very many for a few; 29.4 % have a query."""
    assert SHAPE / len(pages) == pytest.approx(2.77, rel=0.03)
    assert sorted(pages.values())[len(pages) // 2] == 1
    assert max(pages.values()) > 200
    assert sum("?" in page for page in pages) / len(pages) == pytest.approx(0.294, abs=0.02)


def test_statuses_years_and_domains_match_the_papers(lines: list[bytes]) -> None:
    """Tables 6 and 1 of the second paper, in percent of all captures."""
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


def test_path_trees_match_the_papers(pages: Counter[str]) -> None:
    """Mean children of Table 8 and depths of Table 7."""
    keys = {page.split("?")[0] for page in pages}
    paths = mean_children([[host, *filter(None, path.split("/"))] for host, path in (k.split(")/") for k in keys)])
    assert paths[0] == pytest.approx(25.00, rel=0.25)
    for depth, mean in enumerate([7.25, 4.96, 3.26, 3.29, 2.70, 2.48, 2.09, 2.01], start=1):
        assert paths[depth] == pytest.approx(mean, rel=0.1 if depth < 6 else 0.3), f"P{depth}"
    depths = Counter(page.split(")")[1].count("/") if not page.endswith(")/") else 0 for page in keys)
    for depth, share in enumerate([0.4, 9.9, 19.8, 29.4, 15.3, 11.2, 6.0, 4.0, 1.9]):  # Table 7, paths, percent
        assert depths[depth] / len(keys) * 100 == pytest.approx(share, rel=0.3, abs=0.3), f"P{depth}"


class HostSet:
    """A file that stores the hosts of an index."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()

    def write(self, data: bytes) -> None:
        """Add the hosts of whole lines."""
        self.hosts.update(re.findall(r"^[^)]+", data.decode(), re.MULTILINE))


def test_host_trees_match_the_papers() -> None:
    """Mean children of Table 8, roughly: three million lines have about 200 domains with subdomains."""
    file = HostSet()
    write_synthetic_index_to(SynthIndexOptions(3_000_000, seed=1), file, Problems())
    assert len(file.hosts) == pytest.approx(3_000_000 / 2.77 * 0.706 / 195, rel=0.3)
    _, h3, h4, *_ = mean_children(host.split(",") for host in file.hosts)
    assert h3 == pytest.approx(8.53, rel=0.4)
    assert h4 == pytest.approx(8.95, rel=0.4)


def test_byte_order_and_tree_order_differ(pages: Counter[str]) -> None:
    """Pages have siblings `-x` and `.html`, children and queries, which byte order interleaves."""
    keys = {page.split("?")[0] for page in pages}
    parents = {each.rpartition("/")[0] for each in keys} & keys
    pages_with_html = {each.removesuffix(".html") for each in keys if each.endswith(".html")}
    assert len(parents & pages_with_html) > 3


@pytest.mark.parametrize(("lines_wanted", "size"), [(20_000, 1), (20_000, 5_000), (20_000, 20_000), (60_000, 9_000)])
def test_largest_host_has_the_requested_keys(lines_wanted: int, size: int) -> None:
    """Different pages without query, in addition to others."""
    index = synthesize(SynthIndexOptions(lines_wanted, seed=5, largest_host=size))
    assert len(index) == lines_wanted
    assert all(a < b for a, b in pairwise(index))
    keys = {key(line).split("?")[0] for line in index}
    sizes = Counter(each.split(")")[0] for each in keys)
    assert size in sizes.values()
    if size >= 5_000:
        assert max(sizes.values()) == size


def test_shuffled_index_has_the_same_lines() -> None:
    """Well mixed, also with more lines than the buffer holds."""
    index = synthesize(SynthIndexOptions(300_000, seed=3))
    shuffled = synthesize(SynthIndexOptions(300_000, seed=3, shuffled=True))
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
def test_url_list_is_captured(tmp_path: Path, count: int) -> None:
    """Only its pages, all of them if the lines suffice; invalid URLs are counted."""
    file = tmp_path / "list.txt"
    file.write_text(LIST)
    problems = Problems()
    index = synthesize(SynthIndexOptions(count, seed=1, urls=file), problems)
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


def test_url_list_in_a_compressed_column(tmp_path: Path) -> None:
    """As the real lists."""
    file = tmp_path / "list.tsv.gz"
    file.write_bytes(gzip.compress(b"1\tx\thttp://a.com/\n2\tx\n3\ty\thttp://b.com/\n4\ty\t\x01\n"))
    problems = Problems()
    index = synthesize(SynthIndexOptions(100, urls=file, column=3), problems)
    assert {key(line) for line in index} == {"com,a)/", "com,b)/"}
    assert problems.counts == {"no-column": 1, "bad-uri": 1}


def test_short_index_samples_a_long_list(tmp_path: Path) -> None:
    """Pages from the whole list, with the usual numbers of captures."""
    file = tmp_path / "list.txt"
    file.write_text("".join(f"http://host{n:05}.com/\n" for n in range(10_000)))
    index = synthesize(SynthIndexOptions(2_770, seed=1, urls=file))
    hosts = sorted({int(key(line)[8:13]) for line in index})
    assert len(hosts) == 1_000
    assert (hosts[0] < 100, hosts[-1] > 9_900) == (True, True)


@pytest.mark.real_data
def test_real_list_is_captured_with_its_keys() -> None:
    """833,509 URLs of whole hosts: every page has its key."""
    index = synthesize(SynthIndexOptions(2_500_000, seed=1, urls=DATA / "urls" / "eot2024-hosts.txt.gz"))
    sample = index[::25]
    assert uri.surt_many([url(line) for line in sample]) == [key(line) for line in sample]
    expected = {made_key for made_key in uri.surt_many(urls()[:833_509]) if isinstance(made_key, str)}
    assert {key(line) for line in index} == expected


@pytest.mark.parametrize(
    "options",
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
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    """With a usage error."""
    with pytest.raises(UsageError):
        SynthIndexOptions(**options)


def test_list_without_urls_is_rejected(tmp_path: Path) -> None:
    """Also a missing one; nothing is written."""
    (tmp_path / "empty").write_text("# nothing\n")
    for name in ("none", "empty"):
        with pytest.raises(InputError):
            write_synthetic_index(SynthIndexOptions(5, urls=tmp_path / name), tmp_path / "out", Problems())
    assert not (tmp_path / "out").exists()


def decompressed_lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file in any compression."""
    problems = Problems()
    for line in read_lines(file, problems):
        yield line.text + b"\n"
    assert problems.total == 0


@pytest.mark.parametrize("name", ["a.cdxj", "a.cdxj.gz", "a.cdxj.zst"])
def test_extension_selects_the_compression(tmp_path: Path, name: str) -> None:
    """The lines are the same."""
    done = unlost("synth", "index", "--lines", "5000", "--seed", "42", "-o", str(tmp_path / name))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    plain = synthesize(SynthIndexOptions(5_000, seed=42))
    assert list(decompressed_lines(tmp_path / name)) == plain
    assert ((tmp_path / name).stat().st_size < sum(map(len, plain)) / 2) == (name != "a.cdxj")


def test_command_writes_to_standard_output() -> None:
    """With `-o -`, uncompressed."""
    done = unlost("synth", "index", "--lines", "100", "--largest-host", "7", "--unsorted", "-o", "-")
    assert done.stdout.splitlines(keepends=True) == synthesize(SynthIndexOptions(100, largest_host=7, shuffled=True))


def test_command_reports_invalid_urls_of_the_list(tmp_path: Path) -> None:
    """The rest is written, and the exit code is 5."""
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
def test_invalid_input_is_rejected(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its exit code, and no file is left."""
    monkeypatch.chdir(tmp_path)
    done = unlost("synth", "index", *arguments)
    assert (done.returncode, list(tmp_path.iterdir())) == (code, [])
    assert b"Traceback" not in done.stderr
    assert done.stderr


def test_full_disk_leaves_the_previous_file(tmp_path: Path) -> None:
    """And no temporary file."""
    target = tmp_path / "a.cdxj"
    target.write_bytes(b"old\n")
    limit = 3 << 20

    def limit_file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [UNLOST, "synth", "index", "--lines", "100000", "-o", target],
        capture_output=True,
        check=False,
        preexec_fn=limit_file_size,
        timeout=60,
    )
    assert done.returncode == 3
    assert b"too large" in done.stderr
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old\n"]


def test_interruption_leaves_no_files(tmp_path: Path) -> None:
    """At once, in the middle of a long run."""
    with subprocess.Popen(
        [UNLOST, "synth", "index", "--lines", "1000000000", "-o", tmp_path / "a.cdxj"], stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and not any(file.stat().st_size for file in tmp_path.iterdir()):
            pass
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=60)
    assert (process.returncode, list(tmp_path.iterdir())) == (130, [])
    assert b"interrupted" in message


def test_closed_output_pipe_ends_quietly() -> None:
    """As with `| head`."""
    with subprocess.Popen(
        [UNLOST, "synth", "index", "--lines", "1000000000", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 141)
