"""Descriptions of a single memento: formats of MemGator, and the `Link` header of RFC 7089."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.aggregate.example_results import EXAMPLE, SERVICE_URLS, result_of
from tests.aggregate.test_serializers import HOSTILE, read
from unlost.aggregate import MAX_LINK_BYTES, MEDIA_TYPES, TimeMapFormat, describe_memento, memento_link_header

FILES = Path(__file__).parent / "files"
FIVE = [(f"2014020{day}000000", "a", f"http://a/{day}") for day in range(1, 6)]
RELATIONS = {
    0: ["first memento", "next memento", "last memento"],
    1: ["first prev memento", "memento", "next memento", "last memento"],
    2: ["first memento", "prev memento", "memento", "next memento", "last memento"],
    4: ["first memento", "prev memento", "last memento"],
}


def relations(link: str) -> list[str]:
    """Return the relations of mementos in link-format, by date."""
    entries = [entry.split('"') for entry in link.replace(",\n", ", ").split(", <")]
    return [entry[1] for entry in sorted((e for e in entries if "memento" in e[1]), key=lambda e: e[0].lstrip("<"))]


@pytest.mark.parametrize("form", MEDIA_TYPES)
def test_memento_description_matches_memgator(form: TimeMapFormat) -> None:
    """First, last, previous, next and closest memento."""
    assert describe_memento(EXAMPLE, 1, SERVICE_URLS, form).decode() == (FILES / f"memento.{form}").read_text()


@pytest.mark.parametrize(("place", "expected"), RELATIONS.items())
def test_neighbours_of_each_memento(place: int, expected: list[str]) -> None:
    """Each memento occurs once, with all its relations."""
    found = result_of(FIVE)
    assert relations(describe_memento(found, place, SERVICE_URLS, "link").decode()) == expected
    assert relations(memento_link_header(found, place, SERVICE_URLS)) == expected


def test_single_memento_is_first_and_last() -> None:
    """The only one is the first and the last."""
    assert relations(memento_link_header(result_of(FIVE[:1]), 0, SERVICE_URLS)) == ["first last memento"]
    assert relations(describe_memento(result_of(FIVE[:1]), 0, SERVICE_URLS, "link").decode()) == ["first last memento"]


@pytest.mark.parametrize("place", [-1, 5])
def test_index_without_a_memento_raises(place: int) -> None:
    """There is nothing to describe."""
    with pytest.raises(IndexError):
        describe_memento(result_of(FIVE), place, SERVICE_URLS, "json")
    with pytest.raises(IndexError):
        memento_link_header(result_of(FIVE), place, SERVICE_URLS)


def test_timegate_link_header() -> None:
    """It has the original, the TimeMap with type and time span, the TimeGate, and mementos with dates."""
    first, last = "Sat, 01 Feb 2014 00:00:00 GMT", "Sun, 02 Feb 2014 00:00:00 GMT"
    assert memento_link_header(result_of(FIVE[:2], "http://é.com/"), 1, SERVICE_URLS) == (
        '<http://%C3%A9.com/>; rel="original", '
        "<http://localhost:1208/timemap/link/http://%C3%A9.com/>; "
        f'rel="timemap"; type="application/link-format"; from="{first}"; until="{last}", '
        '<http://localhost:1208/timegate/http://%C3%A9.com/>; rel="timegate", '
        f'<http://a/2>; rel="last memento"; datetime="{last}", '
        f'<http://a/1>; rel="first prev memento"; datetime="{first}", '
        '<http://localhost:1208/timemap/json/http://%C3%A9.com/>; rel="timemap"; type="application/json", '
        '<http://localhost:1208/timemap/cdxj/http://%C3%A9.com/>; rel="timemap"; type="application/cdxj+ors"'
    )


@given(st.text(max_size=30), st.text(st.characters(max_codepoint=0xDFFF), max_size=30))
@example(HOSTILE, HOSTILE)
def test_link_header_cannot_be_injected(uri: str, urim: str) -> None:
    """It is one line of visible ASCII with the expected number of entries."""
    found = result_of([("20140210000001", "a", urim), ("20150210000001", "a", urim)], uri)
    header = memento_link_header(found, 0, SERVICE_URLS)
    assert all(" " <= char <= "~" for char in header)
    assert header.count("<") == header.count(">") == header.count("; rel=") == 7
    if uri and urim:
        assert read(header.encode()).original == read(describe_memento(found, 0, SERVICE_URLS, "link")).original


def test_link_header_size_is_limited() -> None:
    """Overlong URLs are left out; other entries remain."""
    rows = [*FIVE[:2], ("20140204000000", "a", "http://a/" + "x" * 1_000_000), FIVE[4]]
    header = memento_link_header(result_of(rows), 1, SERVICE_URLS)
    assert relations(header) == ["first prev memento", "memento", "last memento"]
    long = memento_link_header(result_of(FIVE, "http://a.com/" + "y" * 3_000), 2, SERVICE_URLS)
    assert len(long) <= MAX_LINK_BYTES
    assert long.startswith("<http://a.com/")
    assert relations(long) == RELATIONS[2]
