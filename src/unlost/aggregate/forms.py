"""The parts that TimeMaps and descriptions of single copies have in common, in each format, as MemGator writes them.

What nobody may forge is escaped where it comes in: addresses of copies by `Mementos`, all others by `Places`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Literal

from unlost import dates
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.places import ServiceUrls, DateSpan, ascii_url
from unlost.formats.mementos import MementoTuple, Mementos

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
