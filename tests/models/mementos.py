"""Python model of `unlost.memento.timemap`: a sorted list of tuples."""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable

from tests.models import link_format
from unlost.dates import from_datetime, to_datetime, to_http, to_iso

Row = tuple[str, str, str]


class Mementos:
    """Mementos as (date, archive, URI)."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        # A leap second is counted as the preceding second.
        clean = [
            (from_datetime(to_datetime(date)), escape_uri(archive), escape_uri(uri)) for date, archive, uri in rows
        ]
        unique: dict[tuple[str, str], Row] = {}
        for row in sorted(clean, key=lambda row: (row[0], without_scheme(row[2]), row[2], row[1])):
            unique.setdefault((row[0], without_scheme(row[2])), row)
        self.rows = list(unique.values())

    def packed(self) -> bytes:
        """Return a header with the archives, and one line per memento."""
        archives = sorted({archive for _, archive, _ in self.rows})
        head = "".join(f" {archive}" for archive in archives)
        lines = (f"{date} {archives.index(archive)} {uri}\n" for date, archive, uri in self.rows)
        return f"mementos 1{head}\n{''.join(lines)}".encode("ascii")

    def closest(self, datetime: str) -> int | None:
        """Return the index of the memento closest to a datetime."""
        timestamp = to_datetime(datetime)
        distances = [abs(to_datetime(row[0]) - timestamp) for row in self.rows]
        return distances.index(min(distances)) if distances else None

    def until(self, datetime: str) -> int:
        """Return how many mementos are not later."""
        return bisect_right([row[0] for row in self.rows], datetime)

    def between(self, first: str | None, last: str | None) -> "Mementos":
        """Return the mementos of a period."""
        dates = [row[0] for row in self.rows]
        begin = 0 if first is None else bisect_left(dates, first)
        end = len(dates) if last is None else bisect_right(dates, last)
        return Mementos(self.rows[begin:end])

    def by_archive_and_year(self) -> dict[str, dict[str, int]]:
        """Return the number of mementos per archive and year."""
        counts: dict[str, Counter[str]] = {}
        for date, archive, _ in self.rows:
            counts.setdefault(archive, Counter())[date[:4]] += 1
        return {archive: dict(sorted(years.items())) for archive, years in sorted(counts.items())}

    def relations(self, *, first: bool, last: bool) -> list[str]:
        """Return the relation of each memento."""
        final = len(self.rows) - 1
        return [
            "first " * (first and place == 0) + "last " * (last and place == final) + "memento"
            for place in range(len(self.rows))
        ]

    def link_entries(self, *, first: bool, last: bool) -> str:
        """Return the links of a TimeMap."""
        named = zip(self.rows, self.relations(first=first, last=last), strict=True)
        return "".join(f'<{uri}>; rel="{rel}"; datetime="{to_http(date)}",\n' for (date, _, uri), rel in named)

    def cdxj_lines(self, *, first: bool, last: bool) -> str:
        """Return the lines of a TimeMap in CDXJ."""
        named = zip(self.rows, self.relations(first=first, last=last), strict=True)
        return "".join(
            f"{date} {json.dumps({'uri': uri, 'rel': rel, 'datetime': to_http(date)})}\n"
            for (date, _, uri), rel in named
        )

    def json_items(self) -> str:
        """Return the items of a JSON list, indented by six spaces."""
        items = [{"datetime": to_iso(date), "uri": uri} for date, _, uri in self.rows]
        text = json.dumps(items, indent=2)
        return "\n".join(f"    {line}" for line in text.split("\n")[1:-1])

    def text_lines(self) -> str:
        """Return one line per memento."""
        return "".join(f"{date} {archive} {uri}\n" for date, archive, uri in self.rows)


def escape_uri(text: str) -> str:
    """Return a URI in visible ASCII without `<`, `>` and `"`."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if 0x20 < byte < 0x7F and byte not in b'<>"' else f"%{byte:02X}" for byte in data)


def without_scheme(url: str) -> str:
    """Return the part after `://`, if there is a scheme."""
    return re.sub(r"\A[A-Za-z][A-Za-z0-9+.-]*://", "", url)


def read(body: bytes, archive: str, base: str) -> dict[str, object]:
    """Return the parts of a TimeMap by name as in the link-format model, with `mementos` of web URLs."""
    found = link_format.read(body)
    mementos, faults = found["mementos"], found["faults"]
    assert isinstance(mementos, list)
    assert isinstance(faults, dict)
    stored = [(date, archive, resolve(base, uri)) for uri, date, *_ in mementos]
    good = [row for row in stored if is_web_url(row[2])]
    times, _ = faults.pop("bad-uri", (0, 0))
    bad = times + len(stored) - len(good)
    return found | {"mementos": Mementos(good), "faults": {kind: n for kind, (n, _) in faults.items()}, "bad": bad}


def is_web_url(url: str) -> bool:
    """Return whether a URL is http(s) with a host."""
    found = re.match(r"https?://([^/?#]*)", url, re.IGNORECASE)
    host = found[1].rpartition("@")[2] if found else ""
    return bool(re.match(r"\[[^\]]+\]", host) or re.fullmatch(r"[^:\[][^\[]*", host))


def resolve(base: str, link: str) -> str:
    """Resolve a reference as in RFC 3986, 5.2.2, in its non-strict form."""
    scheme, site, path, query, _ = split_url(base)
    to_scheme, to_site, to_path, to_query, to_fragment = split_url(link)
    if to_scheme is not None and (to_site is not None or to_scheme.lower() != (scheme or "").lower()):
        return link
    if to_site is not None:
        return f"{scheme}:{link}"
    if not to_path:
        result = path + (to_query or query)
    elif to_path.startswith("/"):
        result = remove_dot_segments(to_path) + to_query
    else:
        folder = path[: path.rfind("/") + 1] or "/"
        result = remove_dot_segments(folder + to_path) + to_query
    return f"{scheme}://{site}{result}{to_fragment}"


def split_url(url: str) -> tuple[str | None, str | None, str, str, str]:
    """Return scheme, host, path, query and fragment, the last two with their delimiters."""
    found = re.fullmatch(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", url, re.DOTALL)
    assert found
    return found[1], found[2], found[3], found[4] or "", found[5] or ""


def remove_dot_segments(path: str) -> str:
    """Remove `.` and `..` from an absolute path."""
    *folders, name = path.split("/")[1:]
    stored: list[str] = []
    for folder in [*folders, name]:
        if folder == "..":
            stored = stored[:-1]
        elif folder != ".":
            stored.append(folder)
    end = "/" if name in (".", "..") and stored else ""
    return "/" + "/".join(stored) + end
