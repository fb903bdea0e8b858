"""The slow, obvious model of `unlost.memento.timemap`: cut the text into entries, then match each with a pattern."""

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
    """Return the parts of a TimeMap by name, with `faults`: how many of each kind, and where the first is."""
    found: Found = {"original": None, "itself": None, "timegate": None, "timemaps": [], "mementos": [], "others": 0}
    faults: dict[str, tuple[int, int]] = {}
    found["faults"] = faults

    def count(kind: str, at: int) -> None:
        times, first = faults.get(kind, (0, at))
        faults[kind] = (times + 1, first)

    start = 3 if body.startswith(b"\xef\xbb\xbf") else 0
    # Each byte is a character, so that places in the text are places in the body.
    text = body[start:].decode("latin-1")
    # An address may begin like a tag; parameters follow it.
    if re.match(rf"{BLANK}*<(?:!doctype|html|head|body|\?xml|!--)(?![^>]*>{BLANK}*;)", text, re.IGNORECASE):
        count("html", start)
        return found
    starts = [found_at.end() - 1 for found_at in re.finditer(r"(?:\A|(?<=[,\n\r]))[ \t]*<", text)]
    rubbish = re.search(r"[^ \t\n\f\r,]", text[: starts[0] if starts else None])
    if rubbish:
        count("no-link", start + rubbish.start())
    covered = extensible_from = 0
    for at, end in itertools.pairwise([*starts, len(text)]):
        if at < covered:
            continue  # within a quoted value of an entry before
        whole = end
        if at >= extensible_from:
            whole, is_valid = extended(text, at, end, starts)
            if not is_valid:
                whole, extensible_from = end, whole
        fault = add(found, text[at:end], text[at:whole])
        if fault:
            count(fault, start + at)
        covered = whole
    return found


def extended(text: str, at: int, end: int, starts: list[int]) -> tuple[int, bool]:
    """Return where an entry ends whose quoted values may contain the beginnings of others, and whether it is valid."""
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
    """Match the address of an entry; None if it is not one."""
    split = re.match(rf"<{BLANK}*(.*?){BLANK}*>{BLANK}*(?=;|\Z)", piece.rstrip(" \t\n\f\r,"), re.DOTALL)
    return None if not split or not split[1] or re.search(r"[\x00-\x1f\x7f<]", split[1]) else split


def add(found: Found, piece: str, whole: str) -> str | None:
    """Add an entry to what was found, or return what is wrong with it.

    piece: up to the next `<` that may begin an entry. whole: up to the one that does.
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
    uri = readable(split[1])
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
    if add_list(found, uri, rel, parameters):
        used = True
    if not used:
        found["others"] = int(str(found["others"])) + 1
    return None


def add_list(found: Found, uri: str, rel: set[str], parameters: dict[str, str]) -> bool:
    """Add a link to a list, if it is one that is kept."""
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
    """Put an item at the end of one of the lists."""
    items = found[name]
    assert isinstance(items, list)
    items.append(item)


def read_parameters(rest: str) -> dict[str, str] | str | int:
    """Return the first value of each name, or what is wrong: a word, or where a quote is open at the end."""
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


def readable(uri: str) -> str:
    """Return an address as text: UTF-8, or else each byte that is not ASCII escaped."""
    try:
        return uri.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return "".join(char if char.isascii() else f"%{ord(char):02X}" for char in uri)


def read_date(text: str) -> str | None:
    """Return 14 digits, or None."""
    text = text.strip(" \t\n\f\r")
    if re.fullmatch("[0-9]{14}", text):
        return moment(*(int(text[a:b]) for a, b in ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14))), offset=0)
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
    return moment(int(year), MONTHS.index(month[:3].lower()) + 1, int(day), *clock, offset=offset)


def moment(year: int, month: int, day: int, hour: int, minute: int, second: int, *, offset: int) -> str | None:
    """Return the 14 digits in UTC of a moment so many minutes ahead of it, or None if there is no such moment."""
    if second > 60:
        return None
    try:
        local = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
        return (local - timedelta(minutes=offset)).strftime("%Y%m%d%H%M%S").rjust(14, "0")
    except (ValueError, OverflowError):
        return None


def date_in_uri(uri: str) -> str | None:
    """Return the first date of exactly 14 digits behind a slash, or None."""
    for digits in re.findall("(?<=/)([0-9]{14})(?![0-9])", uri):
        if date := read_date(digits):
            return date
    return None
