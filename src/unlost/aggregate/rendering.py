"""Writes what was found of a page as a TimeMap, whole or a page of it; no Python runs for each copy."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from unlost import dates
from unlost.aggregate import forms
from unlost.aggregate.forms import TimeMapFormat
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.places import ServiceUrls, DateSpan, ascii_url
from unlost.formats.mementos import Mementos

TIMEMAP_PAGE_SIZE = 10_000
"""How many copies a page of a long TimeMap has, about; those of the largest archive have as many."""


MEMENTOS_PER_PIECE = 20_000
"""How many mementos of a long TimeMap are rendered at a time: 2.5 MB of link-format."""


def split_pages(mementos: Mementos, size: int = TIMEMAP_PAGE_SIZE) -> tuple[DateSpan, ...]:
    """Return the spans of time into which a TimeMap can be cut: one if it is short enough, none if it is empty.

    Copies of one second stay together, so a page may have more than `size`.

    >>> from unlost.formats.mementos import Memento
    >>> copies = Mementos(Memento(f"2014020{day}000000", "a", "http://a/") for day in range(1, 6))
    >>> pages(copies, 3)
    (Span(start='20140201000000', until='20140203000000'), Span(start='20140204000000', until='20140205000000'))
    """
    found: list[DateSpan] = []
    begin = 0
    while begin < len(mementos):
        until = mementos[min(begin + size, len(mementos)) - 1].datetime
        found.append(DateSpan(mementos[begin].datetime, until))
        begin = mementos.until(until)
    return tuple(found)


def serialize_timemap(
    result: AggregateResult,
    urls: ServiceUrls,
    form: TimeMapFormat,
    span: DateSpan | None = None,
    other_pages: Sequence[DateSpan] = (),
) -> bytes:
    """Return a TimeMap, as `timemap_pieces` renders it."""
    return b"".join(iter_timemap(result, urls, form, span, other_pages))


def iter_timemap(
    result: AggregateResult,
    urls: ServiceUrls,
    form: TimeMapFormat,
    span: DateSpan | None = None,
    other_pages: Sequence[DateSpan] = (),
) -> Iterator[bytes]:
    """Yield a TimeMap in pieces of `PIECE_MEMENTOS` mementos.

    span: the time of one page of it, if that is what is wanted. further: those of other pages, to link to.
    JSON tells, too, what came of every archive: `reports` and `passed_over`.
    """
    shown = result.mementos if span is None else result.mementos.between(*span)
    itself = urls.timemap(form, result.uri, span)
    parts = _iter_parts(result, shown)
    if form == "link":
        return _iter_link_format(result, urls, shown, parts, itself, other_pages)
    if form == "json":
        return _iter_json(result, urls, shown, parts, itself, other_pages)
    if form == "cdxj":
        return _iter_cdxj(result, urls, parts, itself, other_pages)
    return (part.mementos.text_lines() for part in parts)


class _TimeMapPart(NamedTuple):
    """Consecutive mementos of a TimeMap.

    is_first, is_last: whether the first one is the first of all, and the last one the last. begins, ends: whether the
        TimeMap begins or ends with the part.
    """

    mementos: Mementos
    is_first: bool
    is_last: bool
    begins: bool
    ends: bool


def _iter_parts(result: AggregateResult, shown: Mementos) -> Iterator[_TimeMapPart]:
    """Yield mementos in parts that are short enough. The last one ends a part: those dated in the future follow it."""
    final = result.mementos.until(shown.last.datetime) if shown.last else 0
    offset = final - len(shown)
    last = result.last_index - offset + 1
    cuts = {*range(0, len(shown), MEMENTOS_PER_PIECE), len(shown)}
    if 0 < last < len(shown):
        cuts.add(last)
    places = sorted(cuts)
    if len(places) < 3:
        yield _TimeMapPart(shown, offset == 0, last == len(shown), begins=True, ends=True)
        return
    for begin, end in pairwise(places):
        yield _TimeMapPart(shown[begin:end], offset + begin == 0, end == last, begin == 0, end == len(shown))


def _iter_link_format(
    result: AggregateResult,
    urls: ServiceUrls,
    shown: Mementos,
    parts: Iterator[_TimeMapPart],
    itself: str,
    further: Sequence[DateSpan],
) -> Iterator[bytes]:
    begin = [
        forms.link_entry(ascii_url(result.uri), "original"),
        forms.link_entry(itself, "self", "link", forms.covered_span(shown)),
    ]
    others = [forms.link_entry(urls.timemap("link", result.uri, span), "timemap", "link", span) for span in further]
    before = "".join(f"{entry},\n" for entry in begin).encode()
    after = (",\n".join([*others, *forms.link_footer(result, urls)]) + "\n").encode()
    for mementos, is_first, is_last, begins, ends in parts:
        yield mementos.link_entries(is_first, is_last, before if begins else b"", after if ends else b"")


def _iter_json(
    result: AggregateResult,
    urls: ServiceUrls,
    shown: Mementos,
    parts: Iterator[_TimeMapPart],
    itself: str,
    further: Sequence[DateSpan],
) -> Iterator[bytes]:
    copies: dict[str, object] = {"list": b"[\n\0\n    ]" if shown else []}
    if result.mementos:
        ends = {"first": result.mementos[0], "last": result.mementos[result.last_index]}
        copies |= {name: forms.memento_members(copy) for name, copy in ends.items()}
    members: dict[str, object] = {
        "original_uri": ascii_url(result.uri),
        "self": itself,
        "mementos": forms.json_object(copies, 1),
        **forms.json_footer(result, urls),
    }
    if further:
        members["timemap_index"] = [_page_entry(urls, "json", result.uri, span) for span in further]
    # The copies are written between the two halves of the text: it is long, and each copying of it costs.
    before, _, after = forms.json_object(members).partition(b"\0")
    for part in parts:
        yield part.mementos.json_items(before if part.begins else b",\n", after + b"\n" if part.ends else b"")


def _iter_cdxj(
    result: AggregateResult, urls: ServiceUrls, parts: Iterator[_TimeMapPart], itself: str, further: Sequence[DateSpan]
) -> Iterator[bytes]:
    head = forms.cdxj_head(result, urls, itself)
    if further:
        index = [_page_entry(urls, "cdxj", result.uri, span) for span in further]
        head.append(forms.cdxj_meta("timemap_index", index))
    for mementos, is_first, is_last, begins, _ in parts:
        yield mementos.cdxj_lines(is_first, is_last, forms.join_lines(head) if begins else b"")


def _page_entry(urls: ServiceUrls, form: TimeMapFormat, uri: str, span: DateSpan) -> dict[str, str]:
    """Return another page as it is in JSON."""
    start, until = dates.to_iso(span.start), dates.to_iso(span.until)
    return {"from": start, "until": until, "uri": urls.timemap(form, uri, span)}
