"""What was found, in the formats that clients read: the plain way, until `aggregate.rendering` takes its place."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from unlost import dates
from unlost.aggregate.found import Found
from unlost.aggregate.mementos import Memento

TYPES = {
    "link": "application/link-format",
    "json": "application/json",
    "cdxj": "application/cdxj+ors",
    "text": "text/plain; charset=utf-8",
}
"""The formats, and the media type of each."""

_LISTS = ("link", "json", "cdxj")  # the formats in which a list names its other forms, as MemGator does


@dataclass(frozen=True, slots=True)
class Places:
    """Our own addresses. base: what stands before every path, without a slash at its end."""

    base: str

    def timemap(self, form: str, uri: str) -> str:
        """Return where the list of a page's copies is."""
        return f"{self.base}/timemap/{form}/{uri}"

    def timegate(self, uri: str) -> str:
        """Return where to ask for the copy closest to a date."""
        return f"{self.base}/timegate/{uri}"


def render_timemap(found: Found, form: str, places: Places, span: tuple[str, str] | None = None) -> bytes:
    """Return the list of all copies in a format, or of those of a span of time, 14 digits each."""
    rows = list(_named(found, range(len(found.mementos))))
    if span:
        rows = [row for row in rows if span[0] <= row[1].datetime <= span[1]]
    return _rendered(found, form, places, rows, places.timemap(form, found.uri))


def render_memento(found: Found, place_index: int, form: str, places: Places) -> bytes:
    """Return what there is to say of one copy: itself, and the first, last, previous and next."""
    chosen = sorted({0, len(found.mementos) - 1, place_index, *_beside(found, place_index)})
    rows = list(_named(found, chosen, place_index))
    date = found.mementos[place_index].datetime
    own = f"{places.base}/memento/{form}/{date}/{found.uri}"
    return _rendered(found, form, places, rows, own, found.mementos[place_index])


def link_header(found: Found, place_index: int, places: Places) -> str:
    """Return the Link header of an answer that leads to one copy."""
    chosen = sorted({0, len(found.mementos) - 1, place_index, *_beside(found, place_index)})
    links = [f'<{found.uri}>; rel="original"', _list_link(found, "link", places, "timemap")]
    links += [_memento_link(rel, row) for rel, row in _named(found, chosen, place_index)]
    links.append(f'<{places.timegate(found.uri)}>; rel="timegate"')
    return ", ".join(links)


def render_summary(found: Found, form: str) -> bytes:
    """Return how many copies each archive has of each year."""
    counts = found.mementos.by_archive_and_year()
    if form == "text":
        return "".join(f"{a}\t{y}\t{n}\n" for a, years in counts.items() for y, n in years.items()).encode()
    years: dict[str, int] = {}
    for each in counts.values():
        for year, count in each.items():
            years[year] = years.get(year, 0) + count
    summary = {
        "original_uri": found.uri,
        "mementos": len(found.mementos),
        "archives": counts,
        "years": dict(sorted(years.items())),
        **_failures(found),
    }
    return json.dumps(summary).encode() + b"\n"


def _rendered(
    found: Found, form: str, places: Places, rows: list[tuple[str, Memento]], own: str, closest: Memento | None = None
) -> bytes:
    if form == "text":
        return "".join(f"{row.datetime} {row.uri}\n" for _, row in rows).encode()
    if form == "json":
        return _json(found, places, rows, own, closest)
    if form == "cdxj":
        return _cdxj(found, places, rows, own)
    links = [f'<{found.uri}>; rel="original"', f'<{own}>; rel="self"; type="{TYPES["link"]}"{_span(found)}']
    links += [_memento_link(rel, row) for rel, row in rows]
    links += [f'<{places.timemap(each, found.uri)}>; rel="timemap"; type="{TYPES[each]}"' for each in _LISTS]
    links.append(f'<{places.timegate(found.uri)}>; rel="timegate"')
    return (",\n".join(links) + "\n").encode()


def _json(found: Found, places: Places, rows: list[tuple[str, Memento]], own: str, closest: Memento | None) -> bytes:
    listed = [{"datetime": dates.to_iso(row.datetime), "uri": row.uri} for _, row in rows]
    mementos: dict[str, object] = {"list": listed}
    for rel, row in rows:
        for name in rel.split():
            if name != "memento":
                mementos[name] = {"datetime": dates.to_iso(row.datetime), "uri": row.uri}
    if closest is not None:
        mementos["closest"] = {"datetime": dates.to_iso(closest.datetime), "uri": closest.uri}
    whole = {
        "original_uri": found.uri,
        "self": own,
        "mementos": mementos,
        "timemap_uri": {f"{each}_format": places.timemap(each, found.uri) for each in _LISTS},
        "timegate_uri": places.timegate(found.uri),
        **_failures(found),
    }
    return json.dumps(whole, indent=2).encode() + b"\n"


def _cdxj(found: Found, places: Places, rows: list[tuple[str, Memento]], own: str) -> bytes:
    lists = {f"{each}_format": places.timemap(each, found.uri) for each in _LISTS}
    lines = [
        '!context ["http://tools.ietf.org/html/rfc7089"]',
        f"!id {json.dumps({'uri': own})}",
        '!keys ["memento_datetime_YYYYMMDDhhmmss"]',
        f"!meta {json.dumps({'original_uri': found.uri})}",
        f"!meta {json.dumps({'timegate_uri': places.timegate(found.uri)})}",
        f"!meta {json.dumps({'timemap_uri': lists})}",
    ]
    for rel, row in rows:
        about = {"uri": row.uri, "rel": rel, "datetime": dates.to_http(row.datetime)}
        lines.append(f"{row.datetime} {json.dumps(about)}")
    return ("\n".join(lines) + "\n").encode()


def _failures(found: Found) -> dict[str, object]:
    failed = {report.archive: report.outcome for report in found.failures}
    return {"archives_failed": failed} if failed else {}


def _named(found: Found, chosen: "range | list[int]", current: int | None = None) -> Iterator[tuple[str, Memento]]:
    """Yield copies with what each is to the list and to the current one."""
    last = len(found.mementos) - 1
    beside = dict(zip(_beside(found, current), ("prev", "next"), strict=True)) if current is not None else {}
    for place in chosen:
        names = ["first"] * (place == 0) + ["last"] * (place == last)
        if place in beside and beside[place] and place != current:
            names.append(beside[place])
        yield " ".join([*names, "memento"]), found.mementos[place]


def _beside(found: Found, place: int) -> tuple[int, int]:
    return max(0, place - 1), min(len(found.mementos) - 1, place + 1)


def _memento_link(rel: str, row: Memento) -> str:
    return f'<{row.uri}>; rel="{rel}"; datetime="{dates.to_http(row.datetime)}"'


def _list_link(found: Found, form: str, places: Places, rel: str) -> str:
    return f'<{places.timemap(form, found.uri)}>; rel="{rel}"; type="{TYPES[form]}"{_span(found)}'


def _span(found: Found) -> str:
    first, last = found.mementos[0].datetime, found.mementos[-1].datetime
    return f'; from="{dates.to_http(first)}"; until="{dates.to_http(last)}"'
