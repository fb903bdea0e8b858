"""Describes one copy among those of a page: which it is, and which are before and behind it, first and last."""

from collections.abc import Iterable

from unlost.aggregate import forms
from unlost.aggregate.forms import TimeMapFormat
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.places import ServiceUrls, ascii_url

MAX_LINK_BYTES = 8_000
"""How long a `Link` header may be: clients such as aiohttp read up to 8,190 bytes of a field, most proxies no more."""


def describe_memento(result: AggregateResult, place: int, urls: ServiceUrls, form: TimeMapFormat) -> bytes:
    """Return which copy is at a place, and its neighbours, first and last: nothing of the others.

    Text has a line for each: what it is, its date, archive and address. Raises IndexError for a place where none is.
    """
    chosen = [(result.mementos[each], words) for each, words in sorted(_relations(result, place).items())]
    if form == "link":
        entries = [forms.link_entry(ascii_url(result.uri), "original")]
        entries += [forms.memento_entry(copy, _registered_relation(words)) for copy, words in chosen]
        entries += forms.link_footer(result, urls)
        return ",\n".join(entries).encode() + b"\n"
    if form == "json":
        copies = {word: forms.memento_members(copy) for copy, words in chosen for word in words}
        return forms.json_object({
            "original_uri": ascii_url(result.uri), "mementos": copies, **forms.json_footer(result, urls),
        }) + b"\n"  # fmt: skip
    if form == "cdxj":
        rows = (forms.cdxj_row(copy, " ".join([*words, "memento"])) for copy, words in chosen)
        return forms.join_lines([*forms.cdxj_head(result, urls), *rows])
    return forms.join_lines(f"{','.join(words)} {copy.datetime} {copy.archive} {copy.uri}" for copy, words in chosen)


def memento_link_header(result: AggregateResult, place: int, urls: ServiceUrls) -> str:
    """Return the value of the `Link` header of an answer that leads to the copy at a place, or is that copy.

    It has the page, its TimeMap with the time that it covers, its TimeGate, copies: this one, the first, the last,
    the one before and the next; then its TimeMap in the other formats. Of a selection, only relations that are known
    are listed. What would make it longer than `MAX_LINK_BYTES` is left out; the TimeMap has it all. Raises IndexError
    for a place where none is.
    """
    span = forms.covered_span(result.mementos) if all(result.known_ends) else None
    relations = _relations(result, place)
    entries = [
        forms.link_entry(ascii_url(result.uri), "original"),
        forms.link_entry(urls.timemap("link", result.uri), "timemap", "link", span),
        forms.link_entry(urls.timegate(result.uri), "timegate"),
        *(forms.memento_entry(result.mementos[each], _registered_relation(words)) for each, words in relations.items()),
        *(
            forms.link_entry(urls.timemap(form, result.uri), "timemap", form)
            for form in forms.LINKED_FORMATS
            if form != "link"
        ),
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
