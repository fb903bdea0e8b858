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
"""Media type of each TimeMap format."""
LINKED_FORMATS: tuple[TimeMapFormat, ...] = ("link", "json", "cdxj")
"""Formats that a response links to as alternative forms of the TimeMap."""

TIMEMAP_PAGE_SIZE = 10_000
"""Approximate number of mementos in a page of a long TimeMap.

A page is a time span and not a number, so that it stays the same when mementos are added before it."""
MEMENTOS_PER_PIECE = 20_000
"""Number of mementos of a long TimeMap that are rendered at a time: 2.5 MB of link-format, which takes 10 ms."""

MAX_LINK_BYTES = 8_000
"""Maximum length of a `Link` header: aiohttp accepts 8,190 bytes a field, and most proxies no more."""


def covered_span(mementos: Mementos) -> DateSpan | None:
    """Return the time span from the first memento to the last; None without mementos."""
    first, last = mementos.first, mementos.last
    return DateSpan(first.datetime, last.datetime) if first and last else None


def link_entry(uri: str, rel: str, form: TimeMapFormat | None = None, span: DateSpan | None = None) -> str:
    """Return a link-format entry.

    Args:
        uri: Target.
        rel: Relation.
        form: Format of the target, for its `type`.
        span: Time span of the target, for its `from` and `until`.
    """
    entry = f'<{uri}>; rel="{rel}"'
    if form:
        entry += f'; type="{MEDIA_TYPES[form]}"'
    if span:
        entry += f'; from="{dates.to_http(span.start)}"; until="{dates.to_http(span.until)}"'
    return entry


def memento_entry(memento: MementoTuple, rel: str) -> str:
    """Return the link-format entry of a memento."""
    return f'<{memento.uri}>; rel="{rel}"; datetime="{dates.to_http(memento.datetime)}"'


def link_footer(result: AggregateResult, urls: ServiceUrls) -> list[str]:
    """Return the last entries of a document: the TimeMap in all formats, and the TimeGate."""
    timemaps = [link_entry(urls.timemap(form, result.uri), "timemap", form) for form in LINKED_FORMATS]
    return [*timemaps, link_entry(urls.timegate(result.uri), "timegate")]


def memento_members(memento: MementoTuple) -> dict[str, str]:
    """Return a memento as a JSON object."""
    return {"datetime": dates.to_iso(memento.datetime), "uri": memento.uri}


def json_footer(result: AggregateResult, urls: ServiceUrls) -> dict[str, object]:
    """Return the last members of a document: TimeMaps and TimeGate as in MemGator, then the reports of all archives."""
    return {
        "timemap_uri": {f"{form}_format": urls.timemap(form, result.uri) for form in LINKED_FORMATS},
        "timegate_uri": urls.timegate(result.uri),
        "reports": [asdict(report) for report in result.reports],
        "passed_over": list(result.passed_over),
    }


def json_object(members: Mapping[str, object], depth: int = 0) -> bytes:
    """Return a JSON object, indented by two spaces a level. Values of type bytes are inserted as JSON."""
    inner = "  " * (depth + 1)
    lines = [
        f"{inner}{json.dumps(name)}: ".encode() + _indented_json(value, depth + 1) for name, value in members.items()
    ]
    return b"{\n" + b",\n".join(lines) + b"\n" + b"  " * depth + b"}"


def _indented_json(value: object, depth: int) -> bytes:
    if isinstance(value, bytes):
        return value
    # JSON strings contain no raw newlines, so every newline comes from the indentation.
    return json.dumps(value, indent=2).replace("\n", "\n" + "  " * depth).encode()


def cdxj_head(result: AggregateResult, urls: ServiceUrls, self_url: str | None = None) -> list[str]:
    """Return the header lines of a CDXJ document.

    Args:
        result: The result.
        urls: The service's URLs.
        self_url: URL of the document, if it is a TimeMap.
    """
    timemaps = {f"{form}_format": urls.timemap(form, result.uri) for form in LINKED_FORMATS}
    return [
        '!context ["http://tools.ietf.org/html/rfc7089"]',
        *([f"!id {json.dumps({'uri': self_url})}"] if self_url else []),
        '!keys ["memento_datetime_YYYYMMDDhhmmss"]',
        cdxj_meta("original_uri", ascii_url(result.uri)),
        cdxj_meta("timegate_uri", urls.timegate(result.uri)),
        cdxj_meta("timemap_uri", timemaps),
    ]


def cdxj_meta(name: str, value: object) -> str:
    """Return a `!meta` line."""
    return f"!meta {json.dumps({name: value})}"


def cdxj_row(memento: MementoTuple, rel: str) -> str:
    """Return the line of a memento."""
    members = {"uri": memento.uri, "rel": rel, "datetime": dates.to_http(memento.datetime)}
    return f"{memento.datetime} {json.dumps(members)}"


def join_lines(texts: Iterable[str]) -> bytes:
    """Return lines of ASCII text as bytes."""
    return "".join(f"{text}\n" for text in texts).encode()


def split_pages(mementos: Mementos, size: int = TIMEMAP_PAGE_SIZE) -> tuple[DateSpan, ...]:
    """Return the time spans of the pages of a TimeMap: one if it is short, none if it is empty.

    Mementos of one second stay together, so a page may exceed `size`.

    >>> from unlost.memento.timemap import MementoTuple
    >>> mementos = Mementos(MementoTuple(f"2014020{day}000000", "a", "http://a/") for day in range(1, 6))
    >>> split_pages(mementos, 3)
    (DateSpan(start='20140201000000', until='20140203000000'), DateSpan(start='20140204000000', until='20140205000000'))
    """
    spans: list[DateSpan] = []
    begin = 0
    while begin < len(mementos):
        until = mementos[min(begin + size, len(mementos)) - 1].datetime
        spans.append(DateSpan(mementos[begin].datetime, until))
        begin = mementos.until(until)
    return tuple(spans)


def serialize_timemap(
    result: AggregateResult,
    urls: ServiceUrls,
    form: TimeMapFormat,
    span: DateSpan | None = None,
    other_pages: Sequence[DateSpan] = (),
) -> bytes:
    """Return a TimeMap, as `iter_timemap` renders it."""
    return b"".join(iter_timemap(result, urls, form, span, other_pages))


def iter_timemap(
    result: AggregateResult,
    urls: ServiceUrls,
    form: TimeMapFormat,
    span: DateSpan | None = None,
    other_pages: Sequence[DateSpan] = (),
) -> Iterator[bytes]:
    """Yield a TimeMap in pieces of about `MEMENTOS_PER_PIECE` mementos.

    JSON also contains the reports of all archives (`reports` and `passed_over`).

    Args:
        result: The result.
        urls: The service's URLs.
        form: The format.
        span: Time span of the requested page; None for the whole TimeMap.
        other_pages: Time spans of other pages to link to.
    """
    mementos = result.mementos if span is None else result.mementos.between(*span)
    self_url = urls.timemap(form, result.uri, span)
    parts = _iter_parts(result, mementos)
    if form == "link":
        return _iter_link_format(result, urls, mementos, parts, self_url, other_pages)
    if form == "json":
        return _iter_json(result, urls, mementos, parts, self_url, other_pages)
    if form == "cdxj":
        return _iter_cdxj(result, urls, parts, self_url, other_pages)
    return (part.mementos.text_lines() for part in parts)


class _TimeMapPart(NamedTuple):
    """Consecutive mementos of a TimeMap.

    Attributes:
        mementos: The mementos.
        is_first: Whether the first one is the first of the result.
        is_last: Whether the last one is the last of the result.
        begins: Whether the TimeMap begins with this part.
        ends: Whether the TimeMap ends with this part.
    """

    mementos: Mementos
    is_first: bool
    is_last: bool
    begins: bool
    ends: bool


def _iter_parts(result: AggregateResult, mementos: Mementos) -> Iterator[_TimeMapPart]:
    """Yield mementos in parts of limited size. The last memento ends a part, even if future-dated ones follow it."""
    final = result.mementos.until(mementos.last.datetime) if mementos.last else 0
    offset = final - len(mementos)
    last = result.last_index - offset + 1
    cuts = {*range(0, len(mementos), MEMENTOS_PER_PIECE), len(mementos)}
    if 0 < last < len(mementos):
        cuts.add(last)
    bounds = sorted(cuts)
    if len(bounds) < 3:
        yield _TimeMapPart(mementos, offset == 0, last == len(mementos), begins=True, ends=True)
        return
    for begin, end in pairwise(bounds):
        yield _TimeMapPart(mementos[begin:end], offset + begin == 0, end == last, begin == 0, end == len(mementos))


def _iter_link_format(
    result: AggregateResult,
    urls: ServiceUrls,
    mementos: Mementos,
    parts: Iterator[_TimeMapPart],
    self_url: str,
    other_pages: Sequence[DateSpan],
) -> Iterator[bytes]:
    begin = [
        link_entry(ascii_url(result.uri), "original"),
        link_entry(self_url, "self", "link", covered_span(mementos)),
    ]
    others = [link_entry(urls.timemap("link", result.uri, span), "timemap", "link", span) for span in other_pages]
    before = "".join(f"{entry},\n" for entry in begin).encode()
    after = (",\n".join([*others, *link_footer(result, urls)]) + "\n").encode()
    for part in parts:
        yield part.mementos.link_entries(
            part.is_first, part.is_last, before if part.begins else b"", after if part.ends else b""
        )


def _iter_json(
    result: AggregateResult,
    urls: ServiceUrls,
    page_mementos: Mementos,
    parts: Iterator[_TimeMapPart],
    self_url: str,
    other_pages: Sequence[DateSpan],
) -> Iterator[bytes]:
    mementos: dict[str, object] = {"list": b"[\n\0\n    ]" if page_mementos else []}
    if result.mementos:
        first_and_last = {"first": result.mementos[0], "last": result.mementos[result.last_index]}
        mementos |= {name: memento_members(memento) for name, memento in first_and_last.items()}
    members: dict[str, object] = {
        "original_uri": ascii_url(result.uri),
        "self": self_url,
        "mementos": json_object(mementos, 1),
        **json_footer(result, urls),
    }
    if other_pages:
        members["timemap_index"] = [_page_entry(urls, "json", result.uri, span) for span in other_pages]
    # The mementos are inserted between the two halves of the document, to avoid copying a long text.
    before, _, after = json_object(members).partition(b"\0")
    for part in parts:
        yield part.mementos.json_items(before if part.begins else b",\n", after + b"\n" if part.ends else b"")


def _iter_cdxj(
    result: AggregateResult,
    urls: ServiceUrls,
    parts: Iterator[_TimeMapPart],
    self_url: str,
    other_pages: Sequence[DateSpan],
) -> Iterator[bytes]:
    head = cdxj_head(result, urls, self_url)
    if other_pages:
        index = [_page_entry(urls, "cdxj", result.uri, span) for span in other_pages]
        head.append(cdxj_meta("timemap_index", index))
    for mementos, is_first, is_last, begins, _ in parts:
        yield mementos.cdxj_lines(is_first, is_last, join_lines(head) if begins else b"")


def _page_entry(urls: ServiceUrls, form: TimeMapFormat, uri: str, span: DateSpan) -> dict[str, str]:
    """Return the JSON object of another page."""
    start, until = dates.to_iso(span.start), dates.to_iso(span.until)
    return {"from": start, "until": until, "uri": urls.timemap(form, uri, span)}


def describe_memento(result: AggregateResult, place: int, urls: ServiceUrls, form: TimeMapFormat) -> bytes:
    """Return a document about one memento, with the first, last, previous and next ones.

    In the text format, a line has the relations, date, archive and URL.

    Args:
        result: The result.
        place: Index of the memento.
        urls: The service's URLs.
        form: The format.

    Raises:
        IndexError: There is no such memento.
    """
    selected = [(result.mementos[index], relations) for index, relations in sorted(_relations(result, place).items())]
    if form == "link":
        entries = [link_entry(ascii_url(result.uri), "original")]
        entries += [memento_entry(memento, _registered_relation(relations)) for memento, relations in selected]
        entries += link_footer(result, urls)
        return ",\n".join(entries).encode() + b"\n"
    if form == "json":
        mementos = {word: memento_members(memento) for memento, relations in selected for word in relations}
        return json_object({
            "original_uri": ascii_url(result.uri), "mementos": mementos, **json_footer(result, urls),
        }) + b"\n"  # fmt: skip
    if form == "cdxj":
        rows = (cdxj_row(memento, " ".join([*relations, "memento"])) for memento, relations in selected)
        return join_lines([*cdxj_head(result, urls), *rows])
    return join_lines(
        f"{','.join(relations)} {memento.datetime} {memento.archive} {memento.uri}" for memento, relations in selected
    )


def memento_link_header(result: AggregateResult, place: int, urls: ServiceUrls) -> str:
    """Return the `Link` header of a response that redirects to a memento or is that memento.

    It lists the original, the TimeMap with its time span, the TimeGate, this memento, the first, last, previous and
    next ones, and the other TimeMap formats. For a selection, only known relations are listed. Entries beyond
    `MAX_LINK_BYTES` are left out; the TimeMap has them all.

    Raises:
        IndexError: There is no memento at `place`.
    """
    span = covered_span(result.mementos) if all(result.known_ends) else None
    relations = _relations(result, place)
    entries = [
        link_entry(ascii_url(result.uri), "original"),
        link_entry(urls.timemap("link", result.uri), "timemap", "link", span),
        link_entry(urls.timegate(result.uri), "timegate"),
        *(memento_entry(result.mementos[index], _registered_relation(names)) for index, names in relations.items()),
        *(link_entry(urls.timemap(form, result.uri), "timemap", form) for form in LINKED_FORMATS if form != "link"),
    ]
    return ", ".join(_fit_entries(entries))


def _relations(result: AggregateResult, place: int) -> dict[int, list[str]]:
    """Return the indices to describe, the requested one first, with the relations of each, in MemGator's order."""
    count = len(result.mementos)
    if not 0 <= place < count:
        raise IndexError("no memento at that index")
    indices = {"first": 0, "last": result.last_index, "closest": place, "next": place + 1, "prev": place - 1}
    if result.is_selection:  # TimeGates name single mementos, so there may be others between them
        is_known = dict(zip(("first", "last"), result.known_ends, strict=True)) | {"closest": True}
        indices = {relation: index for relation, index in indices.items() if is_known.get(relation)}
    valid = {relation: index for relation, index in indices.items() if 0 <= index < count}
    order = dict.fromkeys([place, *valid.values()])
    return {index: [relation for relation, other in valid.items() if other == index] for index in order}


def _registered_relation(relations: Iterable[str]) -> str:
    """Return the relation types of RFC 7089, section 2.2. MemGator's `closest` is none; every memento has `memento`."""
    return " ".join([*(relation for relation in relations if relation != "closest"), "memento"])


def _fit_entries(entries: Iterable[str]) -> Iterable[str]:
    """Yield the entries that fit into a header. The most important ones come first."""
    remaining = MAX_LINK_BYTES
    for entry in entries:
        if len(entry) + 2 <= remaining:
            remaining -= len(entry) + 2
            yield entry


def memento_summary_json(result: AggregateResult, urls: ServiceUrls) -> bytes:
    """Return the numbers of mementos by archive and year, with totals and the reports of all archives."""
    counts = result.mementos.by_archive_and_year()
    first_and_last = (
        {"first": result.mementos[0], "last": result.mementos[result.last_index]} if result.mementos else {}
    )
    archives = {archive: {"mementos": sum(years.values()), "years": years} for archive, years in counts.items()}
    return json_object({
        "original_uri": ascii_url(result.uri),
        "mementos": len(result.mementos),
        **{name: memento_members(memento) for name, memento in first_and_last.items()},
        "archives": archives,
        "years": _sum_by_year(counts),
        **json_footer(result, urls),
    }) + b"\n"  # fmt: skip


def summary_text(result: AggregateResult) -> bytes:
    """Return the numbers of mementos as a table: a row for each year, a column for each archive, totals last."""
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
    total: Counter[str] = Counter()
    for years in counts.values():
        total.update(years)
    return dict(sorted(total.items()))
