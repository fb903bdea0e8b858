"""Lists of addresses."""

import gzip
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.endless import long_line
from tests.real_data import DATA, urls
from unlost.problems import Problems
from unlost.text_lines import URL_LIST_PROBLEM_KINDS, read_urls


def read(body: bytes, column: int | None = None) -> tuple[list[bytes], dict[str, int]]:
    """Return the addresses of a list and the problems."""
    problems = Problems()
    found = [line.text for line in read_urls(BytesIO(body), problems, "x", column=column)]
    assert set(problems.counts) <= set(URL_LIST_PROBLEM_KINDS)
    return found, problems.counts


def test_blanks_and_comments_are_passed_over() -> None:
    """So are a byte order mark, white space around addresses, and the end of the last line."""
    assert read(b"\xef\xbb\xbfhttp://a/\r\n\n # no\n#yes\n\t\n  http://b/ c ") == (
        [b"http://a/", b"# no", b"http://b/ c"],
        {},
    )


def test_a_column_of_a_table() -> None:
    """Columns count from 1; a row without it is counted."""
    table = b"1\tpics\thttp://a/\n2\tpics\n3\tpics\t \n4\tpics\thttp://b/\tmore\t"
    assert read(table, 3) == ([b"http://a/", b"http://b/"], {"no-column": 2})
    assert read(table, 1) == ([b"1", b"2", b"3", b"4"], {})


def test_rubbish_is_counted() -> None:
    """NULs and other control characters are in no address; bytes that are not UTF-8 may be."""
    assert read(b"http://a/\0\nhttp://b/\tx\nhttp://c/\xff\n") == ([b"http://c/\xff"], {"bad-uri": 2})


def test_a_line_of_100_megabytes_is_one_problem() -> None:
    """The lines around it are read."""
    problems = Problems()
    found = list(read_urls(long_line(b"a\n", b"\nb"), problems, "x"))
    assert [line.text for line in found] == [b"a", b"b"]
    assert problems.counts == {"too-long": 1}


ADDRESSES = st.binary(min_size=1).filter(
    lambda text: (
        text.strip() == text and not text.startswith((b"#", b"\xef\xbb\xbf")) and min(text) > 31 and 127 not in text
    )
)


@given(st.lists(ADDRESSES))
def test_what_is_joined_is_read_back(addresses: list[bytes]) -> None:
    """A list, and a column of a table, are the addresses that went into them."""
    assert read(b"\n".join(addresses)) == (addresses, {})
    assert read(b"".join(b"1\t" + address + b"\tx\r\n" for address in addresses), 2) == (addresses, {})


@given(st.binary(), st.none() | st.integers(1, 4))
def test_no_list_is_too_strange(body: bytes, column: int | None) -> None:
    """Any bytes are addresses and problems; nothing is raised."""
    read(body, column)


@pytest.mark.real_data
def test_the_list_of_links_is_read_whole() -> None:
    """A million rows of time, place and address, none of them lost."""
    problems = Problems()
    with gzip.open(DATA / "urls" / "reddit2013-links.tsv.gz") as file:
        found = [line.text.decode() for line in read_urls(file, problems, "links", column=3)]
    assert problems.counts == {}
    assert found == [url.strip(" ") for url in urls()[-len(found) :]]
