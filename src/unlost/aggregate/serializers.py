"""Serializes results as TimeMaps, memento descriptions and summaries: link-format, JSON, CDXJ, text."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Literal, NamedTuple

from unlost import dates
from unlost.aggregate.models import AggregateResult
from unlost.aggregate.urls import DateSpan, ServiceUrls, ascii_url
from unlost.memento.timemap import Mementos, MementoTuple

TimeMapFormat = Literal["link", "json", "cdxj", "text"]
MEDIA_TYPES: dict[TimeMapFormat, str] = {
    "link": "application/link-format",
    "json": "application/json",
    "cdxj": "application/cdxj+ors",
    "text": "text/plain; charset=utf-8",
}
"""The formats, and as what each is sent."""
LINKED_FORMATS: tuple[TimeMapFormat, ...] = ("link", "json", "cdxj")
"""The formats that an answer names as other forms of the TimeMap."""


def covered_span(mementos: Mementos) -> DateSpan | None:
    """Return the time from the first copy to the last; None if there are none."""
    first, last = mementos.first, mementos.last
    return DateSpan(first.datetime, last.datetime) if first and last else None


def link_entry(uri: str, rel: str, form: TimeMapFormat | None = None, span: DateSpan | None = None) -> str:
    """Return an entry of link-format. form: the format of what it links to. span: the time that it covers."""
    entry = f'<{uri}>; rel="{rel}"'
    if form:
        entry += f'; type="{MEDIA_TYPES[form]}"'
    if span:
        entry += f'; from="{dates.to_http(span.start)}"; until="{dates.to_http(span.until)}"'
    return entry


def memento_entry(memento: MementoTuple, rel: str) -> str:
    """Return the entry of a copy."""
    return f'<{memento.uri}>; rel="{rel}"; datetime="{dates.to_http(memento.datetime)}"'


def link_footer(result: AggregateResult, urls: ServiceUrls) -> list[str]:
    """Return the entries that are last: the TimeMap in all formats, and the TimeGate."""
    lists = [link_entry(urls.timemap(form, result.uri), "timemap", form) for form in LINKED_FORMATS]
    return [*lists, link_entry(urls.timegate(result.uri), "timegate")]


def memento_members(memento: MementoTuple) -> dict[str, str]:
    """Return a copy as it is in JSON."""
    return {"datetime": dates.to_iso(memento.datetime), "uri": memento.uri}


def json_footer(result: AggregateResult, urls: ServiceUrls) -> dict[str, object]:
    """Return the members that are last: the TimeMap in all formats, the TimeGate, then what MemGator does not tell."""
    return {
        "timemap_uri": {f"{form}_format": urls.timemap(form, result.uri) for form in LINKED_FORMATS},
        "timegate_uri": urls.timegate(result.uri),
        "reports": [asdict(report) for report in result.reports],
        "passed_over": list(result.passed_over),
    }


def json_object(members: Mapping[str, object], depth: int = 0) -> bytes:
    """Return an object as JSON, indented by two a level. Values that are bytes are JSON already."""
    inner = "  " * (depth + 1)
    lines = [
        f"{inner}{json.dumps(name)}: ".encode() + _indented_json(value, depth + 1) for name, value in members.items()
    ]
    return b"{\n" + b",\n".join(lines) + b"\n" + b"  " * depth + b"}"


def _indented_json(value: object, depth: int) -> bytes:
    if isinstance(value, bytes):
        return value
    # Texts have no newlines of their own in JSON: all that are there begin a line.
    return json.dumps(value, indent=2).replace("\n", "\n" + "  " * depth).encode()


def cdxj_head(result: AggregateResult, urls: ServiceUrls, itself: str | None = None) -> list[str]:
    """Return the lines before the copies. itself: where this list is, if it is one."""
    lists = {f"{form}_format": urls.timemap(form, result.uri) for form in LINKED_FORMATS}
    return [
        '!context ["http://tools.ietf.org/html/rfc7089"]',
        *([f"!id {json.dumps({'uri': itself})}"] if itself else []),
        '!keys ["memento_datetime_YYYYMMDDhhmmss"]',
        cdxj_meta("original_uri", ascii_url(result.uri)),
        cdxj_meta("timegate_uri", urls.timegate(result.uri)),
        cdxj_meta("timemap_uri", lists),
    ]


def cdxj_meta(name: str, value: object) -> str:
    """Return a line that tells something about the list."""
    return f"!meta {json.dumps({name: value})}"


def cdxj_row(memento: MementoTuple, rel: str) -> str:
    """Return the line of a copy."""
    members = {"uri": memento.uri, "rel": rel, "datetime": dates.to_http(memento.datetime)}
    return f"{memento.datetime} {json.dumps(members)}"


def join_lines(texts: Iterable[str]) -> bytes:
    """Return lines as bytes; all that is in them is ASCII."""
    return "".join(f"{text}\n" for text in texts).encode()


TIMEMAP_PAGE_SIZE = 10_000
"""How many copies a page of a long TimeMap has, about; those of the largest archive have as many."""
MEMENTOS_PER_PIECE = 20_000
"""How many mementos of a long TimeMap are rendered at a time: 2.5 MB of link-format."""


def split_pages(mementos: Mementos, size: int = TIMEMAP_PAGE_SIZE) -> tuple[DateSpan, ...]:
    """Return the spans of time into which a TimeMap can be cut: one if it is short enough, none if it is empty.

    Copies of one second stay together, so a page may have more than `size`.

    >>> from unlost.memento.timemap import TimeMapEntry
    >>> copies = Mementos(TimeMapEntry(f"2014020{day}000000", "a", "http://a/") for day in range(1, 6))
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
        link_entry(ascii_url(result.uri), "original"),
        link_entry(itself, "self", "link", covered_span(shown)),
    ]
    others = [link_entry(urls.timemap("link", result.uri, span), "timemap", "link", span) for span in further]
    before = "".join(f"{entry},\n" for entry in begin).encode()
    after = (",\n".join([*others, *link_footer(result, urls)]) + "\n").encode()
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
        copies |= {name: memento_members(copy) for name, copy in ends.items()}
    members: dict[str, object] = {
        "original_uri": ascii_url(result.uri),
        "self": itself,
        "mementos": json_object(copies, 1),
        **json_footer(result, urls),
    }
    if further:
        members["timemap_index"] = [_page_entry(urls, "json", result.uri, span) for span in further]
    # The copies are written between the two halves of the text: it is long, and each copying of it costs.
    before, _, after = json_object(members).partition(b"\0")
    for part in parts:
        yield part.mementos.json_items(before if part.begins else b",\n", after + b"\n" if part.ends else b"")


def _iter_cdxj(
    result: AggregateResult, urls: ServiceUrls, parts: Iterator[_TimeMapPart], itself: str, further: Sequence[DateSpan]
) -> Iterator[bytes]:
    head = cdxj_head(result, urls, itself)
    if further:
        index = [_page_entry(urls, "cdxj", result.uri, span) for span in further]
        head.append(cdxj_meta("timemap_index", index))
    for mementos, is_first, is_last, begins, _ in parts:
        yield mementos.cdxj_lines(is_first, is_last, join_lines(head) if begins else b"")


def _page_entry(urls: ServiceUrls, form: TimeMapFormat, uri: str, span: DateSpan) -> dict[str, str]:
    """Return another page as it is in JSON."""
    start, until = dates.to_iso(span.start), dates.to_iso(span.until)
    return {"from": start, "until": until, "uri": urls.timemap(form, uri, span)}


MAX_LINK_BYTES = 8_000
"""How long a `Link` header may be: clients such as aiohttp read up to 8,190 bytes of a field, most proxies no more."""


def describe_memento(result: AggregateResult, place: int, urls: ServiceUrls, form: TimeMapFormat) -> bytes:
    """Return which copy is at a place, and its neighbours, first and last: nothing of the others.

    Text has a line for each: what it is, its date, archive and address. Raises IndexError for a place where none is.
    """
    chosen = [(result.mementos[each], words) for each, words in sorted(_relations(result, place).items())]
    if form == "link":
        entries = [link_entry(ascii_url(result.uri), "original")]
        entries += [memento_entry(copy, _registered_relation(words)) for copy, words in chosen]
        entries += link_footer(result, urls)
        return ",\n".join(entries).encode() + b"\n"
    if form == "json":
        copies = {word: memento_members(copy) for copy, words in chosen for word in words}
        return json_object({
            "original_uri": ascii_url(result.uri), "mementos": copies, **json_footer(result, urls),
        }) + b"\n"  # fmt: skip
    if form == "cdxj":
        rows = (cdxj_row(copy, " ".join([*words, "memento"])) for copy, words in chosen)
        return join_lines([*cdxj_head(result, urls), *rows])
    return join_lines(f"{','.join(words)} {copy.datetime} {copy.archive} {copy.uri}" for copy, words in chosen)


def memento_link_header(result: AggregateResult, place: int, urls: ServiceUrls) -> str:
    """Return the value of the `Link` header of an answer that leads to the copy at a place, or is that copy.

    It has the page, its TimeMap with the time that it covers, its TimeGate, copies: this one, the first, the last,
    the one before and the next; then its TimeMap in the other formats. Of a selection, only relations that are known
    are listed. What would make it longer than `MAX_LINK_BYTES` is left out; the TimeMap has it all. Raises IndexError
    for a place where none is.
    """
    span = covered_span(result.mementos) if all(result.known_ends) else None
    relations = _relations(result, place)
    entries = [
        link_entry(ascii_url(result.uri), "original"),
        link_entry(urls.timemap("link", result.uri), "timemap", "link", span),
        link_entry(urls.timegate(result.uri), "timegate"),
        *(memento_entry(result.mementos[each], _registered_relation(words)) for each, words in relations.items()),
        *(link_entry(urls.timemap(form, result.uri), "timemap", form) for form in LINKED_FORMATS if form != "link"),
    ]
    return ", ".join(_fit_entries(entries))


def _relations(result: AggregateResult, place: int) -> dict[int, list[str]]:
    """Return the places that are told of, the wanted one first, and what each is, in MemGator's order of words."""
    count = len(result.mementos)
    if not 0 <= place < count:
        raise IndexError("no copy at that place")
    told = {"first": 0, "last": result.last_index, "closest": place, "next": place + 1, "prev": place - 1}
    if result.is_selection:  # what is between mementos that TimeGates named is not known
        known = dict(zip(("first", "last"), result.known_ends, strict=True)) | {"closest": True}
        told = {word: each for word, each in told.items() if known.get(word)}
    there = {word: each for word, each in told.items() if 0 <= each < count}
    order = dict.fromkeys([place, *there.values()])
    return {each: [word for word, at in there.items() if at == each] for each in order}


def _registered_relation(words: Iterable[str]) -> str:
    """Return a relation of words that the standard has: `closest` is none, and every copy is a memento."""
    return " ".join([*(word for word in words if word != "closest"), "memento"])


def _fit_entries(entries: Iterable[str]) -> Iterable[str]:
    """Yield the entries that fit into a header, the important ones first."""
    left = MAX_LINK_BYTES
    for entry in entries:
        if len(entry) + 2 <= left:
            left -= len(entry) + 2
            yield entry


def summary_json(result: AggregateResult, urls: ServiceUrls) -> bytes:
    """Return how many copies each archive has of each year, how many all have, and what came of every archive."""
    counts = result.mementos.by_archive_and_year()
    ends = {"first": result.mementos[0], "last": result.mementos[result.last_index]} if result.mementos else {}
    archives = {archive: {"mementos": sum(years.values()), "years": years} for archive, years in counts.items()}
    return json_object({
        "original_uri": ascii_url(result.uri),
        "mementos": len(result.mementos),
        **{name: memento_members(copy) for name, copy in ends.items()},
        "archives": archives,
        "years": _sum_by_year(counts),
        **json_footer(result, urls),
    }) + b"\n"  # fmt: skip


def summary_text(result: AggregateResult) -> bytes:
    """Return the same as a table: a line for each year, a column for each archive, totals last."""
    counts = result.mementos.by_archive_and_year()
    archives = list(counts)
    rows = [["year", *archives, "total"]]
    for year, total in _sum_by_year(counts).items():
        rows.append([year, *(str(counts[archive].get(year, 0)) for archive in archives), str(total)])
    totals = [str(sum(counts[archive].values())) for archive in archives]
    rows.append(["total", *totals, str(len(result.mementos))])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return join_lines(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def _sum_by_year(counts: dict[str, dict[str, int]]) -> dict[str, int]:
    """Return how many copies all archives have of each year, in order."""
    total: Counter[str] = Counter()
    for years in counts.values():
        total.update(years)
    return dict(sorted(total.items()))
