"""Sites in memory, for what compares them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from unlost.errors import InputError
from unlost.formats.problems import Problems
from unlost.measure.comparison import Compared, Comparison, Likeness, Outcome
from unlost.measure.resource import NONE, Body, Columns, Resource, Resources


def resource(
    name: str,
    content: bytes = b"",
    mime: str | None = "text/html",
    *,
    uri: str | None = None,
    datetime: str | None = None,
    modified: str | None = None,
    migrated: bool | None = None,
) -> Resource:
    """Return a resource whose place is its content."""
    digest = hashlib.sha1(content, usedforsecurity=False).digest()
    address = f"http://{name}" if uri is None else uri
    return Resource(name, address, datetime, modified, mime, digest, len(content), migrated, content)


class MadeResources(Resources):
    """Resources that were made up, by name."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._by_name = {each.name: each for each in resources}

    def __getitem__(self, name: str) -> Resource:
        """Return one. Raises KeyError."""
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._by_name)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_name)

    def columns(self) -> Columns:
        """Return them as columns."""
        made = self._by_name.values()
        return Columns(
            list(self._by_name),
            [each.uri for each in made],
            [each.mime for each in made],
            [each.digest for each in made],
            [each.size for each in made],
            [NONE if each.datetime is None else int(each.datetime) for each in made],
            [NONE if each.modified is None else int(each.modified) for each in made],
        )


class MadeSite:
    """A site of resources that were made up."""

    def __init__(self, resources: Iterable[Resource], listed: Iterable[str] = (), requests: int | None = None) -> None:
        self.resources: Resources = MadeResources(resources)
        self.listed = frozenset(listed)
        self.requests = requests
        self.left_out: Mapping[str, int] = {}
        self.problems = Problems()

    def body(self, resource: Resource, most: int) -> Body:
        """Return the content; one that is `unreadable` is."""
        content = resource.place
        assert isinstance(content, bytes)
        if content == b"unreadable":
            raise InputError("it cannot be read any more")
        return Body(content[:most], None, len(content) > most)


def made_comparison(
    identical: int = 0, changed: int = 0, missing: int = 0, added: int = 0, similar: int = 0, held: int = 0
) -> Comparison:
    """Return a comparison with so many of each; all are HTML."""
    originals: list[Resource] = []
    same: list[Resource] = []
    different: list[Compared] = []
    for outcome, count in zip(Outcome, (identical, changed, missing, added), strict=True):
        for number in range(count):
            one = resource(f"a.example/{outcome.value}/{number}", uri=f"http://a.example/{outcome.value}/{number}.html")
            first = None if outcome is Outcome.ADDED else one
            originals += [one] if first else []
            if outcome is Outcome.IDENTICAL:
                same.append(one)
                continue
            second = None if outcome is Outcome.MISSING else one
            is_similar = outcome is Outcome.CHANGED and number < similar
            likeness = Likeness(0.9 if is_similar else 0.1) if outcome is Outcome.CHANGED else None
            is_held = outcome is Outcome.MISSING and number < held
            different.append(Compared(one.name, outcome, first, second, True, likeness, is_similar, held=is_held))
    names = [each.name for each in same]
    return Comparison(MadeResources(originals), MadeResources(same), names, tuple(different))
