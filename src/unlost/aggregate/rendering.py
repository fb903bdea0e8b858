"""Writes what was found of a page as a TimeMap, whole or a page of it; no Python runs for each copy."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from unlost import dates
from unlost.aggregate import forms
from unlost.aggregate.forms import Format
from unlost.aggregate.found import Found
from unlost.aggregate.places import Places, Span, harmless
from unlost.formats.mementos import Mementos

PAGE_SIZE = 10_000
"""How many copies a page of a long TimeMap has, about; those of the largest archive have as many."""


PIECE_MEMENTOS = 20_000
"""How many mementos of a long TimeMap are rendered at a time: 2.5 MB of link-format."""


def pages(mementos: Mementos, size: int = PAGE_SIZE) -> tuple[Span, ...]:
    """Return the spans of time into which a TimeMap can be cut: one if it is short enough, none if it is empty.

    Copies of one second stay together, so a page may have more than `size`.

    >>> from unlost.formats.mementos import Memento
    >>> copies = Mementos(Memento(f"2014020{day}000000", "a", "http://a/") for day in range(1, 6))
    >>> pages(copies, 3)
    (Span(start='20140201000000', until='20140203000000'), Span(start='20140204000000', until='20140205000000'))
    """
    found: list[Span] = []
    begin = 0
    while begin < len(mementos):
        until = mementos[min(begin + size, len(mementos)) - 1].datetime
        found.append(Span(mementos[begin].datetime, until))
        begin = mementos.until(until)
    return tuple(found)


def timemap(
    found: Found, places: Places, form: Format, span: Span | None = None, further: Sequence[Span] = ()
) -> bytes:
    """Return a TimeMap, as `timemap_pieces` renders it."""
    return b"".join(timemap_pieces(found, places, form, span, further))


def timemap_pieces(
    found: Found, places: Places, form: Format, span: Span | None = None, further: Sequence[Span] = ()
) -> Iterator[bytes]:
    """Yield a TimeMap in pieces of `PIECE_MEMENTOS` mementos.

    span: the time of one page of it, if that is what is wanted. further: those of other pages, to link to.
    JSON tells, too, what came of every archive: `reports` and `passed_over`.
    """
    shown = found.mementos if span is None else found.mementos.between(*span)
    itself = places.timemap(form, found.uri, span)
    parts = _parts(found, shown)
    if form == "link":
        return _link(found, places, shown, parts, itself, further)
    if form == "json":
        return _json(found, places, shown, parts, itself, further)
    if form == "cdxj":
        return _cdxj(found, places, parts, itself, further)
    return (part.mementos.text_lines() for part in parts)


class _Part(NamedTuple):
    """Consecutive mementos of a TimeMap.

    is_first, is_last: whether the first one is the first of all, and the last one the last. begins, ends: whether the
        TimeMap begins or ends with the part.
    """

    mementos: Mementos
    is_first: bool
    is_last: bool
    begins: bool
    ends: bool


def _parts(found: Found, shown: Mementos) -> Iterator[_Part]:
    """Yield mementos in parts that are short enough. The last one ends a part: those dated in the future follow it."""
    final = found.mementos.until(shown.last.datetime) if shown.last else 0
    offset = final - len(shown)
    last = found.last_place - offset + 1
    cuts = {*range(0, len(shown), PIECE_MEMENTOS), len(shown)}
    if 0 < last < len(shown):
        cuts.add(last)
    places = sorted(cuts)
    if len(places) < 3:
        yield _Part(shown, offset == 0, last == len(shown), begins=True, ends=True)
        return
    for begin, end in pairwise(places):
        yield _Part(shown[begin:end], offset + begin == 0, end == last, begin == 0, end == len(shown))


def _link(
    found: Found, places: Places, shown: Mementos, parts: Iterator[_Part], itself: str, further: Sequence[Span]
) -> Iterator[bytes]:
    begin = [
        forms.link_entry(harmless(found.uri), "original"),
        forms.link_entry(itself, "self", "link", forms.covered(shown)),
    ]
    others = [forms.link_entry(places.timemap("link", found.uri, span), "timemap", "link", span) for span in further]
    before = "".join(f"{entry},\n" for entry in begin).encode()
    after = (",\n".join([*others, *forms.link_end(found, places)]) + "\n").encode()
    for mementos, is_first, is_last, begins, ends in parts:
        yield mementos.link_entries(is_first, is_last, before if begins else b"", after if ends else b"")


def _json(
    found: Found, places: Places, shown: Mementos, parts: Iterator[_Part], itself: str, further: Sequence[Span]
) -> Iterator[bytes]:
    copies: dict[str, object] = {"list": b"[\n\0\n    ]" if shown else []}
    if found.mementos:
        ends = {"first": found.mementos[0], "last": found.mementos[found.last_place]}
        copies |= {name: forms.memento_members(copy) for name, copy in ends.items()}
    members: dict[str, object] = {
        "original_uri": harmless(found.uri),
        "self": itself,
        "mementos": forms.json_object(copies, 1),
        **forms.json_end(found, places),
    }
    if further:
        members["timemap_index"] = [_page(places, "json", found.uri, span) for span in further]
    # The copies are written between the two halves of the text: it is long, and each copying of it costs.
    before, _, after = forms.json_object(members).partition(b"\0")
    for part in parts:
        yield part.mementos.json_items(before if part.begins else b",\n", after + b"\n" if part.ends else b"")


def _cdxj(
    found: Found, places: Places, parts: Iterator[_Part], itself: str, further: Sequence[Span]
) -> Iterator[bytes]:
    head = forms.cdxj_head(found, places, itself)
    if further:
        index = [_page(places, "cdxj", found.uri, span) for span in further]
        head.append(forms.cdxj_meta("timemap_index", index))
    for mementos, is_first, is_last, begins, _ in parts:
        yield mementos.cdxj_lines(is_first, is_last, forms.lines(head) if begins else b"")


def _page(places: Places, form: Format, uri: str, span: Span) -> dict[str, str]:
    """Return another page as it is in JSON."""
    start, until = dates.to_iso(span.start), dates.to_iso(span.until)
    return {"from": start, "until": until, "uri": places.timemap(form, uri, span)}
