"""URL lists are read."""

import gzip
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.generated_file import long_line
from tests.real_data import DATA, urls
from unlost.problems import Problems
from unlost.text_lines import URL_LIST_PROBLEM_KINDS, read_urls


def read_list(body: bytes, column: int | None = None) -> tuple[list[bytes], dict[str, int]]:
    """Return the URLs of a list and the problem counts."""
    problems = Problems()
    lines = [line.text for line in read_urls(BytesIO(body), problems, "x", column=column)]
    assert set(problems.counts) <= set(URL_LIST_PROBLEM_KINDS)
    return lines, problems.counts


def test_blank_lines_and_comments_in_url_list_are_skipped() -> None:
    """Byte order marks and surrounding white space are removed, too."""
    assert read_list(b"\xef\xbb\xbfhttp://a/\r\n\n # no\n#yes\n\t\n  http://b/ c ") == (
        [b"http://a/", b"# no", b"http://b/ c"],
        {},
    )


def test_url_list_column_is_selected_by_number() -> None:
    """Columns count from 1; rows without the column are counted."""
    table = b"1\tpics\thttp://a/\n2\tpics\n3\tpics\t \n4\tpics\thttp://b/\tmore\t"
    assert read_list(table, 3) == ([b"http://a/", b"http://b/"], {"no-column": 2})
    assert read_list(table, 1) == ([b"1", b"2", b"3", b"4"], {})


def test_url_with_control_characters_is_counted() -> None:
    """NULs and other control characters are invalid in URLs; invalid UTF-8 is not."""
    assert read_list(b"http://a/\0\nhttp://b/\tx\nhttp://c/\xff\n") == ([b"http://c/\xff"], {"bad-uri": 2})


def test_url_list_line_of_100_megabytes_is_skipped() -> None:
    """Adjacent lines are read."""
    problems = Problems()
    lines = list(read_urls(long_line(b"a\n", b"\nb"), problems, "x"))
    assert [line.text for line in lines] == [b"a", b"b"]
    assert problems.counts == {"too-long": 1}


URLS = st.binary(min_size=1).filter(
    lambda text: (
        text.strip() == text and not text.startswith((b"#", b"\xef\xbb\xbf")) and min(text) > 31 and 127 not in text
    )
)


@given(st.lists(URLS))
def test_url_list_round_trip_is_lossless(listed: list[bytes]) -> None:
    """A list, and a column of a table, yield the URLs written to them."""
    assert read_list(b"\n".join(listed)) == (listed, {})
    assert read_list(b"".join(b"1\t" + url + b"\tx\r\n" for url in listed), 2) == (listed, {})


@given(st.binary(), st.none() | st.integers(1, 4))
def test_arbitrary_bytes_as_url_list_raise_no_exception(body: bytes, column: int | None) -> None:
    """Arbitrary bytes yield URLs and problems."""
    read_list(body, column)


@pytest.mark.real_data
def test_real_link_list_is_read_completely() -> None:
    """A million rows of time, place and URL are read without problems."""
    problems = Problems()
    with gzip.open(DATA / "urls" / "reddit2013-links.tsv.gz") as file:
        lines = [line.text.decode() for line in read_urls(file, problems, "links", column=3)]
    assert problems.counts == {}
    assert lines == [url.strip(" ") for url in urls()[-len(lines) :]]
