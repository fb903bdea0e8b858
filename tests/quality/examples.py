"""Pages labelled by hand, with reference pages of their sites.

There is one folder per label, with an `index.toml` that describes each example, and its pages. The pages are stored in
UTF-8 so that they can be read and reviewed. They are served in the `charset` of the index, as declared in their
`<meta>`. All pages are invented, with hosts that cannot exist.
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
UNCLEAR = "unclear"  # ambiguous: read, but not counted
LABELS = (*BAD, GOOD, UNCLEAR)

# The role of a context page.
ROLES = {
    "earlier": "an earlier good page of the same site, at the same or another URL",
    "other": "a good page of the same site from about the same time",
    "home": "the site's response for its root at about the same time",
    "random": "the site's response for a URL that never existed, at about the same time",
}


@dataclass(frozen=True)
class Page:
    """One response: its URL, capture time (UTC) and content.

    `headers` contains only relevant headers. `body` is encoded in `charset`, a name known to Python; `language` is the
    two-letter code of the text.
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
    """A page of the same site with its role, one of `ROLES`."""

    role: str


@dataclass(frozen=True)
class Example(Page):
    """The labels that are right for the page."""

    name: str
    label: str
    also: tuple[str, ...]
    origin: str
    context: tuple[Context, ...]

    @property
    def accepted_labels(self) -> frozenset[str]:
        """The labels that are right for it."""
        return frozenset((self.label, *self.also))


@cache
def examples() -> tuple[Example, ...]:
    """Return all examples by label in the order of `LABELS`, then in index order."""
    return tuple(example for label in LABELS for example in _read_examples(label))


@cache
def held_out() -> tuple[Example, ...]:
    """Return the held-out pages, which were written after the rules by an author who had not run them.

    They are in one folder, each with its label. A page is used up once a rule is changed for it.
    """
    return tuple(_read_examples("held-out"))


def examples_with_labels(*labels: str) -> tuple[Example, ...]:
    """Return the examples of these labels."""
    return tuple(example for example in examples() if example.label in labels)


def _read_examples(folder: str) -> list[Example]:
    """Return the examples of one folder; the default label is the folder's name."""
    index = tomllib.loads((FOLDER / folder / "index.toml").read_text(encoding="utf-8"))
    return [
        Example(
            **_read_page(folder, entry),
            name=entry["name"],
            label=entry.get("label", folder),
            also=tuple(entry.get("also", ())),
            origin=entry["origin"],
            context=tuple(
                sorted(
                    (Context(**_read_page(folder, page), role=page["role"]) for page in entry.get("context", ())),
                    key=lambda page: page.when,
                )
            ),
        )
        for entry in index["example"]
    ]


def _read_page(folder: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `Page`, with the body encoded as served."""
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
