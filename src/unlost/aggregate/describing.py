"""Describes one copy among those of a page: which it is, and which are before and behind it, first and last."""

from collections.abc import Iterable

from unlost.aggregate import forms
from unlost.aggregate.forms import Format
from unlost.aggregate.found import Found
from unlost.aggregate.places import Places, harmless

MAX_LINK_BYTES = 8_000
"""How long a `Link` header may be: clients such as aiohttp read up to 8,190 bytes of a field, most proxies no more."""


def description(found: Found, place: int, places: Places, form: Format) -> bytes:
    """Return which copy is at a place, and its neighbours, first and last: nothing of the others.

    Text has a line for each: what it is, its date, archive and address. Raises IndexError for a place where none is.
    """
    chosen = [(found.mementos[each], words) for each, words in sorted(_relations(found, place).items())]
    if form == "link":
        entries = [forms.link_entry(harmless(found.uri), "original")]
        entries += [forms.memento_entry(copy, _registered(words)) for copy, words in chosen]
        entries += forms.link_end(found, places)
        return ",\n".join(entries).encode() + b"\n"
    if form == "json":
        copies = {word: forms.memento_members(copy) for copy, words in chosen for word in words}
        return forms.json_object({
            "original_uri": harmless(found.uri), "mementos": copies, **forms.json_end(found, places),
        }) + b"\n"  # fmt: skip
    if form == "cdxj":
        rows = (forms.cdxj_row(copy, " ".join([*words, "memento"])) for copy, words in chosen)
        return forms.lines([*forms.cdxj_head(found, places), *rows])
    return forms.lines(f"{','.join(words)} {copy.datetime} {copy.archive} {copy.uri}" for copy, words in chosen)


def link_header(found: Found, place: int, places: Places) -> str:
    """Return the value of the `Link` header of an answer that leads to the copy at a place, or is that copy.

    It has the page, its TimeMap with the time that it covers, its TimeGate, copies: this one, the first, the last,
    the one before and the next; then its TimeMap in the other formats. Of a selection, only relations that are known
    are listed. What would make it longer than `MAX_LINK_BYTES` is left out; the TimeMap has it all. Raises IndexError
    for a place where none is.
    """
    span = forms.covered(found.mementos) if all(found.known_ends) else None
    relations = _relations(found, place)
    entries = [
        forms.link_entry(harmless(found.uri), "original"),
        forms.link_entry(places.timemap("link", found.uri), "timemap", "link", span),
        forms.link_entry(places.timegate(found.uri), "timegate"),
        *(forms.memento_entry(found.mementos[each], _registered(words)) for each, words in relations.items()),
        *(
            forms.link_entry(places.timemap(form, found.uri), "timemap", form)
            for form in forms.LISTED
            if form != "link"
        ),
    ]
    return ", ".join(_fitting(entries))


def _relations(found: Found, place: int) -> dict[int, list[str]]:
    """Return the places that are told of, the wanted one first, and what each is, in MemGator's order of words."""
    count = len(found.mementos)
    if not 0 <= place < count:
        raise IndexError("no copy at that place")
    told = {"first": 0, "last": found.last_place, "closest": place, "next": place + 1, "prev": place - 1}
    if found.is_selection:  # what is between mementos that TimeGates named is not known
        known = dict(zip(("first", "last"), found.known_ends, strict=True)) | {"closest": True}
        told = {word: each for word, each in told.items() if known.get(word)}
    there = {word: each for word, each in told.items() if 0 <= each < count}
    order = dict.fromkeys([place, *there.values()])
    return {each: [word for word, at in there.items() if at == each] for each in order}


def _registered(words: Iterable[str]) -> str:
    """Return a relation of words that the standard has: `closest` is none, and every copy is a memento."""
    return " ".join([*(word for word in words if word != "closest"), "memento"])


def _fitting(entries: Iterable[str]) -> Iterable[str]:
    """Yield the entries that fit into a header, the important ones first."""
    left = MAX_LINK_BYTES
    for entry in entries:
        if len(entry) + 2 <= left:
            left -= len(entry) + 2
            yield entry
