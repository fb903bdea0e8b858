"""Python model of `unlost.memento.timemap`: the text is split into links, and each is matched by patterns."""

import itertools
import re
from datetime import UTC, datetime, timedelta

BLANK = r"[ \t\n\f\r]"
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DATE = re.compile(
    rf"(?:[A-Za-z]+,?{BLANK}*)?([0-9]{{1,2}})[- \t\n\f\r]+([A-Za-z]{{3,9}})[- \t\n\f\r]+([0-9]{{4}}){BLANK}+"
    rf"([0-9]{{2}}):([0-9]{{2}}):([0-9]{{2}}){BLANK}*(GMT|UTC|UT|Z|[+-][0-9]{{2}}:?[0-9]{{2}})?",
    re.IGNORECASE,
)
ISO_DATE = re.compile(
    rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})(?:[Tt ]([0-9]{{2}}):([0-9]{{2}})(?::([0-9]{{2}})(?:\.[0-9]{{1,9}})?)?"
    rf"{BLANK}*(GMT|UTC|UT|Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?",
    re.IGNORECASE,
)

Found = dict[str, object]


def read(body: bytes) -> Found:
    """Return the parts of a TimeMap by name, with `faults`: count and first offset of each kind."""
    found: Found = {"original": None, "itself": None, "timegate": None, "timemaps": [], "mementos": [], "others": 0}
    faults: dict[str, tuple[int, int]] = {}
    found["faults"] = faults

    def count(kind: str, at: int) -> None:
        times, first = faults.get(kind, (0, at))
        faults[kind] = (times + 1, first)

    start = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    # Each byte is one character, so that text offsets are byte offsets.
    text = body[start:].decode("latin-1")
    # A URI may resemble a tag, but is followed by parameters.
    if re.match(rf"{BLANK}*<(?:!doctype|html|head|body|\?xml|!--)(?![^>]*>{BLANK}*;)", text, re.IGNORECASE):
        count("html", start)
        return found
    starts = [found_at.end() - 1 for found_at in re.finditer(r"(?:\A|(?<=[,\n\r]))[ \t]*<", text)]
    garbage = re.search(r"[^ \t\n\f\r,]", text[: starts[0] if starts else None])
    if garbage:
        count("no-link", start + garbage.start())
    covered = extensible_from = 0
    for at, end in itertools.pairwise([*starts, len(text)]):
        if at < covered:
            continue  # inside a quoted value of an earlier link
        whole = end
        if at >= extensible_from:
            whole, is_valid = extend_entry(text, at, end, starts)
            if not is_valid:
                whole, extensible_from = end, whole
        fault = add_entry(found, text[at:end], text[at:whole])
        if fault:
            count(fault, start + at)
        covered = whole
    return found


def extend_entry(text: str, at: int, end: int, starts: list[int]) -> tuple[int, bool]:
    """Return the end of a link whose quoted values may contain delimiters, and whether it is valid."""
    first = end
    uri = split_uri(text[at:end])
    if not uri:
        return end, True
    behind = at + uri.end()
    while True:
        opened = read_parameters(text[behind:end].rstrip(" \t\n\f\r,"))
        if not isinstance(opened, int):
            return end, end == first or not isinstance(opened, str)
        closed = re.compile(r"(?s)\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'").match(text, behind + opened)
        if not closed:
            return end, end == first
        end = min([begin for begin in starts if begin >= closed.end()], default=len(text))


def split_uri(piece: str) -> re.Match[str] | None:
    """Match the URI of a link; None if there is none."""
    split = re.match(rf"<{BLANK}*(.*?){BLANK}*>{BLANK}*(?=;|\Z)", piece.rstrip(" \t\n\f\r,"), re.DOTALL)
    return None if not split or not split[1] or re.search(r"[\x00-\x1f\x7f<]", split[1]) else split


def add_entry(found: Found, piece: str, whole: str) -> str | None:
    """Add a link to the result, or return its problem.

    piece: up to the next possible start of a link. whole: up to the actual start of the next link.
    """
    split = split_uri(piece)
    if not split:
        return "bad-uri"
    parameters = read_parameters(whole[split.end() :].rstrip(" \t\n\f\r,"))
    if not isinstance(parameters, dict):
        return "bad-quote" if isinstance(parameters, int) else parameters
    if "rel" not in parameters:
        return "no-rel"
    rel = set(re.split(BLANK, re.sub("[A-Z]", lambda letter: letter[0].lower(), parameters["rel"])))
    uri = decode_uri(split[1])
    used = False
    if "memento" in rel:
        given = read_date(parameters.get("datetime", ""))
        taken = given or date_in_uri(uri)
        if not taken:
            return "no-date"
        append(found, "mementos", (uri, taken, "first" in rel, "last" in rel, not given))
        used = True
    for name in ("original", "timegate"):
        if name in rel and found[name] is None:
            found[name] = uri
            used = True
    if add_timemap_link(found, uri, rel, parameters):
        used = True
    if not used:
        found["others"] = int(str(found["others"])) + 1
    return None


def add_timemap_link(found: Found, uri: str, rel: set[str], parameters: dict[str, str]) -> bool:
    """Add a link to a TimeMap if its relation is known."""
    kind = parameters.get("type")
    link = (
        uri,
        None if kind is None else kind.encode("latin-1").decode("utf-8", "replace"),
        read_date(parameters.get("from", "")),
        read_date(parameters.get("until", "")),
    )
    if "self" in rel and found["itself"] is None:
        found["itself"] = link
        return True
    if "timemap" in rel and "self" not in rel:
        append(found, "timemaps", link)
        return True
    return False


def append(found: Found, name: str, item: object) -> None:
    """Append an item to one of the lists."""
    items = found[name]
    assert isinstance(items, list)
    items.append(item)


def read_parameters(rest: str) -> dict[str, str] | str | int:
    """Return the first value of each name, or the problem: its kind, or whether a quote is unclosed at the end."""
    found: dict[str, str] = {}
    length = len(rest)
    while rest:
        name, equals, after = re.match(r"(?s);([^=;]*)(=?)(.*)", rest).groups()  # type: ignore[union-attr]
        name = name.strip(" \t\n\f\r").lower()
        value = ""
        if equals:
            if not name:
                return "bad-parameter"
            after = after.lstrip(" \t\n\f\r")
            quoted = re.match(rf"(?s)(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'){BLANK}*(;.*|\Z)", after)
            plain = re.match(r"(?s)([^;\"]*)(;.*|\Z)", after)
            if quoted:
                value, after = re.sub(r"(?s)\\(.)", r"\1", quoted[1] or quoted[2] or ""), quoted[3]
            elif re.fullmatch(r"(?s)\"(?:[^\"\\]|\\.)*\\?|'(?:[^'\\]|\\.)*\\?", after):
                return length - len(after)
            elif after[:1] in ("'", '"') or not plain:
                return "bad-quote"
            else:
                value, after = plain[1].rstrip(" \t\n\f\r"), plain[2]
        found.setdefault(name, value)
        rest = after
    return found


def decode_uri(uri: str) -> str:
    """Return a URI as text: UTF-8, otherwise with non-ASCII bytes escaped."""
    try:
        return uri.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return "".join(char if char.isascii() else f"%{ord(char):02X}" for char in uri)


def read_date(text: str) -> str | None:
    """Return 14 digits, or None."""
    text = text.strip(" \t\n\f\r")
    if re.fullmatch("[0-9]{14}", text):
        return to_utc(*(int(text[a:b]) for a, b in ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14))), offset=0)
    if iso := ISO_DATE.fullmatch(text):
        year, month, day, hour, minute, second, zone = iso.groups("0")
        month = MONTHS[int(month) - 1] if 1 <= int(month) <= 12 else ""
    elif matched := DATE.fullmatch(text):
        day, month, year, hour, minute, second, zone = matched.groups()
    else:
        return None
    if month[:3].lower() not in MONTHS:
        return None
    offset = 0
    if zone and zone[0] in "+-":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        if hours > 23 or minutes > 59:
            return None
        offset = (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
    clock = (int(hour), int(minute), int(second))
    return to_utc(int(year), MONTHS.index(month[:3].lower()) + 1, int(day), *clock, offset=offset)


def to_utc(year: int, month: int, day: int, hour: int, minute: int, second: int, *, offset: int) -> str | None:
    """Return the 14 digits in UTC of a local time with an offset in minutes, or None if it is invalid."""
    if second > 60:
        return None
    try:
        local = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
        return (local - timedelta(minutes=offset)).strftime("%Y%m%d%H%M%S").rjust(14, "0")
    except (ValueError, OverflowError):
        return None


def date_in_uri(uri: str) -> str | None:
    """Return the first date of exactly 14 digits after a slash, or None."""
    for digits in re.findall("(?<=/)([0-9]{14})(?![0-9])", uri):
        if date := read_date(digits):
            return date
    return None
