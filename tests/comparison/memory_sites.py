"""Sites in memory, for tests of the comparison."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from unlost.comparison import (
    NO_DATE,
    ComparedResource,
    Comparison,
    ComparisonOutcome,
    ResourceBody,
    ResourceColumns,
    SiteResource,
    SiteResources,
    TextSimilarity,
)
from unlost.errors import InputError
from unlost.problems import Problems


def resource(
    name: str,
    content: bytes = b"",
    mime: str | None = "text/html",
    *,
    uri: str | None = None,
    datetime: str | None = None,
    modified: str | None = None,
    migrated: bool | None = None,
) -> SiteResource:
    """Return a resource whose body is stored in `place`."""
    digest = hashlib.sha1(content, usedforsecurity=False).digest()
    url = f"http://{name}" if uri is None else uri
    return SiteResource(name, url, datetime, modified, mime, digest, len(content), migrated, content)


class MemoryResources(SiteResources):
    """Resources in memory, by name."""

    def __init__(self, resources: Iterable[SiteResource]) -> None:
        self._by_name = {each.name: each for each in resources}

    def __getitem__(self, name: str) -> SiteResource:
        """Return a resource. Raises KeyError."""
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._by_name)

    def __len__(self) -> int:
        """Return the number of resources."""
        return len(self._by_name)

    def columns(self) -> ResourceColumns:
        """Return the resources as columns."""
        resources = self._by_name.values()
        return ResourceColumns(
            list(self._by_name),
            [each.uri for each in resources],
            [each.mime for each in resources],
            [each.digest for each in resources],
            [each.size for each in resources],
            [NO_DATE if each.datetime is None else int(each.datetime) for each in resources],
            [NO_DATE if each.modified is None else int(each.modified) for each in resources],
        )


class MemorySite:
    """A site in memory."""

    def __init__(
        self, resources: Iterable[SiteResource], listed: Iterable[str] = (), requests: int | None = None
    ) -> None:
        self.resources: SiteResources = MemoryResources(resources)
        self.listed = frozenset(listed)
        self.requests = requests
        self.skipped: Mapping[str, int] = {}
        self.problems = Problems()

    def read_body(self, resource: SiteResource, most: int) -> ResourceBody:
        """Return the body. Raises InputError if it is `unreadable`."""
        content = resource.location
        assert isinstance(content, bytes)
        if content == b"unreadable":
            raise InputError("it cannot be read any more")
        return ResourceBody(content[:most], None, len(content) > most)


def make_comparison(
    identical: int = 0, changed: int = 0, missing: int = 0, added: int = 0, similar: int = 0, listed: int = 0
) -> Comparison:
    """Return a comparison with these numbers of HTML resources."""
    originals: list[SiteResource] = []
    same: list[SiteResource] = []
    different: list[ComparedResource] = []
    for outcome, count in zip(ComparisonOutcome, (identical, changed, missing, added), strict=True):
        for number in range(count):
            one = resource(f"a.example/{outcome.value}/{number}", uri=f"http://a.example/{outcome.value}/{number}.html")
            first = None if outcome is ComparisonOutcome.ADDED else one
            originals += [one] if first else []
            if outcome is ComparisonOutcome.IDENTICAL:
                same.append(one)
                continue
            second = None if outcome is ComparisonOutcome.MISSING else one
            is_similar = outcome is ComparisonOutcome.CHANGED and number < similar
            similarity = TextSimilarity(0.9 if is_similar else 0.1) if outcome is ComparisonOutcome.CHANGED else None
            is_listed = outcome is ComparisonOutcome.MISSING and number < listed
            different.append(
                ComparedResource(one.name, outcome, first, second, True, similarity, is_similar, held=is_listed)
            )
    names = [each.name for each in same]
    return Comparison(MemoryResources(originals), MemoryResources(same), names, tuple(different))
