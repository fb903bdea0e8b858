"""Writes what was found of a page as a TimeMap, whole or a page of it; no Python runs for each copy."""

from collections.abc import Sequence

from unlost import dates
from unlost.aggregate import forms
from unlost.aggregate.forms import Format
from unlost.aggregate.found import Found
from unlost.aggregate.places import Places, Span, harmless
from unlost.formats.mementos import Mementos

PAGE_SIZE = 10_000
"""How many copies a page of a long TimeMap has, about; those of the largest archive have as many."""


def pages(mementos: Mementos, size: int = PAGE_SIZE) -> tuple[Span, ...]:
    """Return the spans of time into which a TimeMap can be cut: one if it is short enough, none if it is empty.

    Copies of one second stay together, so a page may have more than `size`.

    >>> from unlost.formats.mementos import Memento
    >>> copies = Mementos(Memento(f"2014020{day}000000", "a", "http://a/") for day in range(1, 6))
    >>> pages(copies, 3)
    (Span(start='20140201000000', until='20140203000000'), Span(start='20140204000000', until='20140205000000'))
    """
    found: list[Span] = []
    begin = 0
    while begin < len(mementos):
        until = mementos[min(begin + size, len(mementos)) - 1].datetime
        found.append(Span(mementos[begin].datetime, until))
        begin = mementos.until(until)
    return tuple(found)


def timemap(
    found: Found, places: Places, form: Format, span: Span | None = None, further: Sequence[Span] = ()
) -> bytes:
    """Return a TimeMap.

    span: the time of one page of it, if that is what is wanted. further: those of other pages, to link to.
    JSON tells, too, what came of every archive: `reports` and `passed_over`.
    """
    shown = found.mementos if span is None else found.mementos.between(*span)
    itself = places.timemap(form, found.uri, span)
    if form == "link":
        return _link(found, places, shown, itself, further)
    if form == "json":
        return _json(found, places, shown, itself, further)
    if form == "cdxj":
        return _cdxj(found, places, shown, itself, further)
    return shown.text_lines()


def _link(found: Found, places: Places, shown: Mementos, itself: str, further: Sequence[Span]) -> bytes:
    begin = [
        forms.link_entry(harmless(found.uri), "original"),
        forms.link_entry(itself, "self", "link", forms.covered(shown)),
    ]
    others = [forms.link_entry(places.timemap("link", found.uri, span), "timemap", "link", span) for span in further]
    end = ",\n".join([*others, *forms.link_end(found, places)])
    before = "".join(f"{entry},\n" for entry in begin)
    return shown.link_entries(*_ends(found, shown), before.encode(), f"{end}\n".encode())


def _json(found: Found, places: Places, shown: Mementos, itself: str, further: Sequence[Span]) -> bytes:
    copies: dict[str, object] = {"list": b"[\n\0\n    ]" if shown else []}
    ends = {"first": found.mementos.first, "last": found.mementos.last}
    copies |= {name: forms.memento_members(copy) for name, copy in ends.items() if copy}
    members: dict[str, object] = {
        "original_uri": harmless(found.uri),
        "self": itself,
        "mementos": forms.json_object(copies, 1),
        **forms.json_end(found, places),
    }
    if further:
        members["timemap_index"] = [_page(places, "json", found.uri, span) for span in further]
    # The copies are written between the two halves of the text: it is long, and each copying of it costs.
    before, _, after = forms.json_object(members).partition(b"\0")
    return shown.json_items(before, after + b"\n")


def _cdxj(found: Found, places: Places, shown: Mementos, itself: str, further: Sequence[Span]) -> bytes:
    head = forms.cdxj_head(found, places, itself)
    if further:
        index = [_page(places, "cdxj", found.uri, span) for span in further]
        head.append(forms.cdxj_meta("timemap_index", index))
    return shown.cdxj_lines(*_ends(found, shown), forms.lines(head))


def _ends(found: Found, shown: Mementos) -> tuple[bool, bool]:
    """Return whether the first and the last copy that are shown are those of all."""
    return shown.first == found.mementos.first, shown.last == found.mementos.last


def _page(places: Places, form: Format, uri: str, span: Span) -> dict[str, str]:
    """Return another page as it is in JSON."""
    start, until = dates.to_iso(span.start), dates.to_iso(span.until)
    return {"from": start, "until": until, "uri": places.timemap(form, uri, span)}
