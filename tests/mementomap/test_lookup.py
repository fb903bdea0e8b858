"""Looking pages up, in the file and in memory: the paper's sample, hostile addresses and files, and many at once."""

import gzip
import itertools
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mementomap.lookups import FORMS, Form, map_of
from unlost import uri
from unlost._core import MapSource
from unlost.errors import ForeignSchemeError, InputError, UriError, UsageError
from unlost.index import Frequency
from unlost.mementomap import LookupResult, Map

SAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "sample.ukvs"


@FORMS
@pytest.mark.parametrize(
    ("address", "held", "matched", "frequency"),
    [
        ("http://example.com/", True, "com,*", "10000+"),
        ("https://com/", True, "com,*", "10000+"),
        ("https://arxiv.org", True, "org,arxiv)/", "100"),
        ("https://arxiv.org/?q", True, "org,arxiv)/", "100"),
        ("https://arxiv.org/abs/1", True, "org,arxiv)/*", "2500~/900"),
        ("https://arxiv.org/pdf/1", False, "org,arxiv)/pdf/*", "0"),
        ("https://arxiv.org/pdf/1/2?x", False, "org,arxiv)/pdf/*", "0"),
        ("https://arxiv.org/pdf", True, "org,arxiv)/*", "2500~/900"),
        ("https://arxiv.org/pdf.html", True, "org,arxiv)/*", "2500~/900"),
        ("http://www.bbc.co.uk/images/", True, "uk,co,bbc)/images/*", "300+/20-"),
        ("http://www.bbc.co.uk/images/a/b", True, "uk,co,bbc)/images/*", "300+/20-"),
        ("http://www.bbc.co.uk/images-2", False, None, None),
        ("http://bbc.co.uk/", False, None, None),
        ("http://aaa/", False, None, None),
        ("http://zzz/", False, None, None),
    ],
)
def test_the_sample_map_of_the_paper(
    form: Form, address: str, held: bool, matched: str | None, frequency: str | None
) -> None:
    """The most specific key answers; an exclusion denies what is below it, but not the page itself."""
    expected = LookupResult(uri.key(address).split("?")[0], held, matched, frequency)
    holdings = form(SAMPLE)
    assert holdings.lookup(address) == expected
    assert holdings.lookup_many([address]) == [expected]
    assert holdings.lookup_keys_many([uri.key(address)]) == [expected]
    assert holdings.lookup_key_lines(uri.key(address).encode() + b"\r\n") == [expected]
    assert (expected.held, expected.matched) == (held, matched)
    assert expected.frequency == (None if frequency is None else Frequency.parse(frequency))


@FORMS
def test_the_header_is_read(form: Form) -> None:
    """Either form knows what stands above the rows."""
    holdings = form(SAMPLE)
    assert holdings.header.meta["name"] == "Example Web Archive"
    assert holdings.path == str(SAMPLE)
    assert holdings.problems.total == 0


@FORMS
def test_the_total_answers_only_where_everything_was_rolled_up(form: Form, tmp_path: Path) -> None:
    """`*` is what the archive holds altogether, unless the header says that it stands for all of it."""
    total = "* 54321\ncom,a)/ 0\n"
    assert map_of(tmp_path, total, form).lookup("http://a.org/").matched is None
    assert map_of(tmp_path, total, form).lookup_keys_many(["*"])[0].matched is None
    rolled_up = map_of(tmp_path, '!meta {"rolled_up": true}\n' + total, form)
    assert rolled_up.lookup("http://a.org/") == LookupResult("org,a)/", True, "*", "54321")
    assert rolled_up.lookup("http://a.com/").held is False


@FORMS
def test_rows_of_one_key_answer_together(form: Form, tmp_path: Path) -> None:
    """With more key fields, a page is held if it was in any year, and counts add; pages may be the same ones."""
    text = (
        '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n'
        "com,a)/ 2001 0\ncom,a)/ 2002 3/1\ncom,a)/ 2003 4/1\ncom,b)/ 2001 0\ncom,b)/* 2001 5\n"
    )
    holdings = map_of(tmp_path, text, form)
    assert holdings.lookup("http://a.com/") == LookupResult("com,a)/", True, "com,a)/", "7/2-")
    assert holdings.lookup("http://b.com/") == LookupResult("com,b)/", False, "com,b)/", "0")
    assert holdings.lookup("http://b.com/x") == LookupResult("com,b)/x", True, "com,b)/*", "5")


@FORMS
@pytest.mark.parametrize("fields", ["", " x", " 1x", " -1", " 1234567890123456789", ' {"a": 1}'])
def test_unreadable_frequencies_are_held(form: Form, fields: str, tmp_path: Path) -> None:
    """A map must not lose keys: what is not known is held."""
    assert map_of(tmp_path, f"com,a)/{fields}", form).lookup("http://a.com/") == LookupResult(
        "com,a)/", True, "com,a)/", "/"
    )


@FORMS
def test_other_values_may_stand_before_the_frequency(form: Form, tmp_path: Path) -> None:
    """The header says where it is, or that there is none."""
    text = '!fields {"keys": ["surt"], "values": ["language", "frequency"]}\ncom,a)/ en 7 {"x": 1}\n'
    assert str(map_of(tmp_path, text, form).lookup("http://a.com/").frequency) == "7"
    text = '!fields {"keys": ["surt"], "values": ["language"]}\ncom,a)/ en\n'
    assert map_of(tmp_path, text, form).lookup("http://a.com/") == LookupResult("com,a)/", True, "com,a)/", "/")


def test_both_spellings_of_an_address_are_one_page(tmp_path: Path) -> None:
    """However a map and whoever asks write an IP address."""
    for row in ("4,3,2,1)/a 1", "1.2.3.4)/a 1", "4,3,2,1)/a/ 1", "1.2.3.4)/* 1"):
        holdings = map_of(tmp_path, row)
        for asked in ("http://1.2.3.4/a", "4,3,2,1)/a", "1.2.3.4)/a/", "http://0x01020304/A"):
            assert holdings.lookup(asked).held, (row, asked)


def test_very_long_rows_and_many_headers(tmp_path: Path) -> None:
    """Lines of megabytes are searched like others."""
    long = "com,b)/" + "x" * 3_000_000
    header = "".join(f'!meta {{"n{i}": {i}}}\n' for i in range(3000))
    text = header + f'com,a)/ 1 {{"x": "{"y" * 2_000_000}"}}\n{long} 2\ncom,c)/ 3\n'
    for form in (Map.open, Map.load):
        holdings = map_of(tmp_path, text, form)
        assert [holdings.lookup(f"http://{name}.com/").held for name in "abc"] == [True, False, True]
        assert holdings.lookup_keys_many([long])[0].frequency == Frequency(2)
        assert len(holdings.header.meta) == 3000


@FORMS
def test_errors_stand_where_their_addresses_stood(form: Form) -> None:
    """`lookup` raises what `lookup_many` returns; a bad text is no reason to lose the others."""
    holdings = form(SAMPLE)
    good, foreign, bad, also_good = holdings.lookup_many(["http://a.com/", "dns:a.com", b"http://\xff b/", b"com,a)/"])
    assert good == also_good
    assert isinstance(foreign, ForeignSchemeError)
    assert isinstance(bad, UriError)
    with pytest.raises(ForeignSchemeError):
        holdings.lookup("dns:a.com")
    with pytest.raises(TypeError):
        holdings.lookup_many([1])  # type: ignore[list-item]
    assert holdings.lookup_many([]) == []


@FORMS
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 64, 1024, 1025, 9999])
def test_answers_are_a_sequence_in_the_order_of_the_questions(form: Form, threads: int, count: int) -> None:
    """However many there are and whoever found them: numbered, sliced, gone through and told as `held`, the same."""
    holdings = form(SAMPLE)
    asked = [f"http://{'arxiv.org' if i % 3 else 'bbc.co.uk'}/{i}" for i in range(count)]
    answers = holdings.lookup_many(iter(asked), threads)
    expected = [holdings.lookup(each) for each in asked]
    assert isinstance(answers, Sequence)
    assert len(answers) == count
    assert [answers[i] for i in range(-count, count)] == [*expected, *expected]
    assert list(answers) == answers[:] == expected
    assert answers[::-7] == expected[::-7]
    assert answers.held == [answer.held for answer in expected]
    assert answers == expected
    assert answers == holdings.lookup_many(asked)
    assert answers != [*expected, *expected[:1], "one more"]
    assert repr(answers) == f"<{count} results, {sum(answers.held)} held>"
    for place in (count, -count - 1):
        with pytest.raises(IndexError, match=f"there are {count} results, none numbered {place}"):
            answers[place]


@FORMS
def test_no_bad_address_is_held(form: Form) -> None:
    """`held` has a place for each address, whatever it is."""
    assert form(SAMPLE).lookup_many(["http://arxiv.org/", "dns:arxiv.org", "http://bbc.co.uk/"]).held == [
        True,
        False,
        False,
    ]


@FORMS
def test_addresses_that_cannot_be_had_end_the_questions(form: Form) -> None:
    """What the caller's own iterator raises comes out, and nobody goes on to wait for more."""

    def broken() -> Iterator[str]:
        yield from (f"http://arxiv.org/{i}" for i in range(5000))
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        form(SAMPLE).lookup_many(broken(), 3)


@FORMS
def test_keys_are_read_by_the_rules_of_the_map(form: Form, tmp_path: Path) -> None:
    """A map with the papers' keys keeps the case of paths; unknown rules are refused."""
    rows = "com,a)/A 1\n"
    assert not map_of(tmp_path, rows, form).lookup("http://a.com/A").held
    assert map_of(tmp_path, '!meta {"rules": "papers"}\n' + rows, form).lookup("http://a.com/A").held
    with pytest.raises(InputError, match=r"a\.ukvs: made by unknown rules, 'x'"):
        map_of(tmp_path, '!meta {"rules": "x"}\n' + rows, form)


@FORMS
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"hello world\n", "not a map"),
        (b"\x7fELF\0\0", "not a map"),
        (b'com,a)/ 20140101000000 {"url": "x"}\n', "an index"),
        (b" CDX N b a m s k r M S V g\n", "an index"),
        (b"@context []\n", "a profile"),
    ],
)
def test_what_is_no_map_is_refused(form: Form, text: bytes, message: str, tmp_path: Path) -> None:
    """With the file's name, and what it is."""
    with pytest.raises(InputError, match=rf"a\.ukvs: {message}"):
        map_of(tmp_path, text, form)


@FORMS
def test_files_that_cannot_be_read_are_named(form: Form, tmp_path: Path) -> None:
    """Missing ones and folders."""
    for file in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match=str(file)):
            form(file)


def test_compressed_maps_are_loaded(tmp_path: Path) -> None:
    """`open` says what to do with them; a damaged one is refused, since a part of a map is none."""
    packed = gzip.compress(SAMPLE.read_bytes())
    assert map_of(tmp_path, packed, Map.load).lookup("http://a.com/") == Map.open(SAMPLE).lookup("http://a.com/")
    with pytest.raises(InputError, match="compressed"):
        map_of(tmp_path, packed)
    for damaged, message in ((packed[:-12], "ends in the middle"), (packed + b"rubbish", "behind the end")):
        with pytest.raises(InputError, match=message):
            map_of(tmp_path, damaged, Map.load)


def test_rows_that_are_not_sorted_are_refused(tmp_path: Path) -> None:
    """When they are loaded, and where a search comes upon them."""
    rows = [f"com,a{i:03})/ 1\n" for i in range(1000)]
    text = "".join(rows[500:] + rows[:500])
    with pytest.raises(InputError, match=r"a\.ukvs: not sorted: the row at byte 6500"):
        map_of(tmp_path, text, Map.load)
    holdings = map_of(tmp_path, text)
    keys = [row.split()[0] for row in rows]
    with pytest.raises(InputError, match=r"a\.ukvs: not sorted"):
        holdings.lookup_keys_many(keys)
    with pytest.raises(InputError, match=r"a\.ukvs: not sorted"):
        [holdings.lookup(key) for key in keys]


def test_an_open_map_stays_what_it_was(tmp_path: Path) -> None:
    """A file that is replaced by renaming another over it changes nothing for whoever has it open."""
    holdings = map_of(tmp_path, "com,a)/ 1\n")
    (tmp_path / "new").write_text("com,b)/ 1\n")
    (tmp_path / "new").replace(tmp_path / "a.ukvs")
    assert holdings.lookup("http://a.com/").held


@FORMS
def test_answers_do_not_depend_on_threads(form: Form, tmp_path: Path) -> None:
    """One, two or many, from one caller or from several at once."""
    rows = sorted(f"com,a{i % 700})/{i:x}{'/*' if i % 3 else ''} {i}\n" for i in range(20_000))
    holdings = map_of(tmp_path, "".join(rows), form)
    addresses = [f"http://a{i % 701}.com/{i:x}/b" for i in range(30_000)]
    keys = "\n".join(uri.key(address) for address in addresses).encode()
    expected = holdings.lookup_many(addresses, threads=1)
    assert {answer.held for answer in expected if isinstance(answer, LookupResult)} == {True, False}
    for threads in (0, 2, 3, 16, None):
        assert holdings.lookup_many(addresses, threads) == expected
        assert holdings.lookup_key_lines(keys, threads) == expected
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(lambda _: holdings.lookup_many(addresses), range(8)))


@FORMS
def test_others_run_while_it_searches(form: Form, tmp_path: Path) -> None:
    """The lock of the interpreter is not held during a search: another thread goes on counting."""
    rows = "".join(sorted(f"com,a)/{i:x} 1\n" for i in range(5000)))
    holdings = map_of(tmp_path, rows, form)
    # A million folders to look for, each a candidate: one question that takes a while.
    key = "com,a)" + "/a" * 1_000_000
    ended = threading.Event()
    ticks: list[float] = []

    def count() -> None:
        while not ended.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    answers = holdings.lookup_keys_many([key] * 20, threads=1)
    end = time.perf_counter()
    ended.set()
    thread.join()
    assert not any(answer.held for answer in answers)
    gaps = [b - a for a, b in itertools.pairwise(ticks)]
    assert max(gaps) < (end - start) / 2


def test_answers_are_values() -> None:
    """Equal, hashable, picklable, and shown as they are made."""
    answer = Map.open(SAMPLE).lookup("http://www.bbc.co.uk/images/x")
    same = LookupResult("uk,co,bbc)/images/x", True, "uk,co,bbc)/images/*", Frequency(300, "+", 20, "-"))
    assert answer == same
    assert hash(answer) == hash(same)
    assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301  our own bytes
    assert answer != LookupResult("uk,co,bbc)/images/x", True, "uk,co,bbc)/images/*", "300")
    assert answer != object()
    none = LookupResult("com,a)/", False)
    assert repr(none) == "LookupResult(key='com,a)/', held=False, matched=None, frequency=None)"
    assert (none.matched, none.frequency) == (None, None)
    assert pickle.loads(pickle.dumps(none)) == none  # noqa: S301
    with pytest.raises(AttributeError):
        answer.held = False  # type: ignore[misc]
    with pytest.raises(InputError):
        LookupResult("com,a)/", True, "com,a)/", "x")


def test_keys_of_other_bytes_come_back_as_they_are(tmp_path: Path) -> None:
    """Keys that were not made by unlost may be anything; what is not UTF-8 is escaped as file names are."""
    holdings = map_of(tmp_path, b"com,\xff)/* 1\n")
    (answer,) = holdings.lookup_keys_many([b"com,\xff)/a b"])
    assert answer.key.encode("utf-8", "surrogateescape") == b"com,\xff)/a"
    assert answer.matched is not None
    assert answer.held
    assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301


def test_rows_are_taken_once() -> None:
    """The core's source gives its rows away."""
    source = MapSource.open(SAMPLE)
    source.rows(1, False)
    with pytest.raises(UsageError):
        source.rows(1, False)


def test_opening_reads_only_the_header(tmp_path: Path) -> None:
    """A sparse file of a terabyte opens at once."""
    file = tmp_path / "large.ukvs"
    file.write_text("!meta {}\ncom,a)/ 1\n")
    with file.open("r+b") as opened:
        opened.truncate(1 << 40)
    start = time.perf_counter()
    Map.open(file)
    assert time.perf_counter() - start < 1
