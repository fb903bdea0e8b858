"""Pages labelled by hand, and what was known of their sites.

One folder a label: an `index.toml` that describes each example, and its pages. The pages are kept in UTF-8, so that
they can be read and reviewed; they are served in the `charset` that their index names, which is what their own
`<meta>` says. All of them are written for this purpose, with hosts that cannot exist.
"""

import tomllib
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

BAD = ("soft-404", "parked", "hijacked", "login-wall", "consent-wall", "archive-error")
GOOD = "good"
UNCLEAR = "unclear"  # reasonable people differ: read, but not counted
LABELS = (*BAD, GOOD, UNCLEAR)

# What a page of the context is to the example.
ROLES = {
    "earlier": "a good page of the same site before it, at the same or another address",
    "other": "a page of the same site and about the same time that is known to be good",
    "home": "what the site's root answers at about the same time",
    "random": "what the site answers at about the same time for an address that never was",
}


@dataclass(frozen=True)
class Page:
    """One answer: its address, when it was captured (UTC), and what came back.

    `headers` are only those that matter. `body` is in `charset`, a name that Python knows; `language` is that of the
    text, two letters.
    """

    uri: str
    when: datetime
    status: int
    headers: tuple[tuple[str, str], ...]
    charset: str
    language: str
    body: bytes


@dataclass(frozen=True)
class Context(Page):
    """A page of the same site, and what it is to the example: one of `ROLES`."""

    role: str


@dataclass(frozen=True)
class Example(Page):
    """A page with the verdict that it deserves.

    `label` is one of `LABELS`, `also` are labels that would be just as right; `origin` says in general terms where
    pages like it are met. `context` is in order of time.
    """

    name: str
    label: str
    also: tuple[str, ...]
    origin: str
    context: tuple[Context, ...]

    @property
    def deserved(self) -> frozenset[str]:
        """The labels that are right for it."""
        return frozenset((self.label, *self.also))


@cache
def examples() -> tuple[Example, ...]:
    """Return all examples, label by label in the order of `LABELS`, each as its index orders them."""
    return tuple(example for label in LABELS for example in _read(label))


@cache
def held_out() -> tuple[Example, ...]:
    """Return the pages that were written when the rules were done, by somebody who had not run them on any page.

    They are in one folder, each with its label. Whoever changes a rule for one of them has used it up.
    """
    return tuple(_read("held-out"))


def labelled(*labels: str) -> tuple[Example, ...]:
    """Return the examples of these labels."""
    return tuple(example for example in examples() if example.label in labels)


def _read(folder: str) -> list[Example]:
    """Return the examples of one folder; their label is its name, unless they have one of their own."""
    index = tomllib.loads((FOLDER / folder / "index.toml").read_text(encoding="utf-8"))
    return [
        Example(
            **_page(folder, entry),
            name=entry["name"],
            label=entry.get("label", folder),
            also=tuple(entry.get("also", ())),
            origin=entry["origin"],
            context=tuple(
                sorted(
                    (Context(**_page(folder, known), role=known["role"]) for known in entry.get("context", ())),
                    key=lambda known: known.when,
                )
            ),
        )
        for entry in index["example"]
    ]


def _page(folder: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `Page`: the body is read, and encoded as it was served."""
    text = (FOLDER / folder / entry["body"]).read_text(encoding="utf-8")
    return {
        "uri": entry["uri"],
        "when": entry["when"],
        "status": entry["status"],
        "headers": tuple(entry["headers"].items()),
        "charset": entry["charset"],
        "language": entry["language"],
        "body": text.encode(entry["charset"]),
    }
