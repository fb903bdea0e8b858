"""Matches the resources of two sites: identical, changed, missing or added, and how much text they share."""

import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from heapq import merge
from operator import attrgetter
from types import TracebackType
from typing import NamedTuple, Self

from unlost.comparison.difference import (
    PenaltyRules,
    ResourceCounts,
    SiteDifference,
    SuccessLevel,
    success_levels,
    weigh_difference,
)
from unlost.comparison.site import Site, SiteResource, SiteResources, declared_type, is_other_format, likely_type
from unlost.documents import DocumentReader, detect_document_kind
from unlost.errors import DocumentError, InputError
from unlost.html.text import ExtractedText, extract_text, text_resemblance
from unlost.media_types import is_textual

SIMILARITY_THRESHOLD = 0.75
"""From which share of shingles on two texts are almost identical: what the measure was defined with."""
_THREADS = 4  # at most: each may have a large body in memory
_QUEUED_PER_THREAD = 8  # pairs waiting for each thread, so that none is idle and few are in memory


class ComparisonOutcome(StrEnum):
    """What became of a resource."""

    IDENTICAL = "identical"
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class TextSimilarity:
    """How much text two versions have in common.

    share: of all 10-word shingles of both, from 0 to 1; None if that cannot be told.
    reason: one word why it cannot: `encrypted`, `damaged`, `too-long`, `too-big`, `no-ghostscript`, `no-text`,
        `no-words`, `unreadable`.
    partial: whether a text was so long that only its beginning was looked at.
    """

    share: float | None
    reason: str | None = None
    partial: bool = False


class ComparedResource(NamedTuple):
    """What became of one resource: a named tuple, as a `Resource` is.

    original, recovered: it, in each of the two sites; None where it is not.
    textual: whether it is text, PDF, PostScript or an Office document.
    similarity: of a changed textual one; None of all others.
    similar: whether that is enough for almost identical.
    migrated: of what came back: in another format than the original (True), in the same (False), not known (None).
    held: whether it is missing although an archive is known to hold it.
    """

    name: str
    outcome: ComparisonOutcome
    original: SiteResource | None
    recovered: SiteResource | None
    textual: bool = False
    similarity: TextSimilarity | None = None
    similar: bool = False
    migrated: bool | None = None
    held: bool = False

    @property
    def resource(self) -> SiteResource:
        """The original, else what was added."""
        found = self.original or self.recovered
        assert found is not None, "it is in one of the two"  # noqa: S101
        return found

    @property
    def uri(self) -> str:
        """Its address, as the original spells it."""
        return self.resource.uri

    @property
    def mime(self) -> str:
        """Its media type, as the original has it; `unknown` if nobody told one."""
        return declared_type(self.resource)


@dataclass(frozen=True)
class Comparison:
    """All resources of two sites, and what they add up to.

    original, recovered: the resources of each.
    identical: the names of those that are; most are of most sites, and nothing else is kept for them.
    different: all others, by name.
    similar_at: from which share on texts are almost identical.
    requests: how many it took to recover the site; None if nobody counted.
    """

    original: SiteResources
    recovered: SiteResources
    identical: Collection[str]
    different: tuple[ComparedResource, ...]
    similar_at: float = SIMILARITY_THRESHOLD
    requests: int | None = None

    def resources(self) -> Iterator[ComparedResource]:
        """Yield all of them, by name."""
        identical = (
            _match_resource(name, self.original[name], self.recovered[name]) for name in sorted(self.identical)
        )
        return merge(identical, self.different, key=attrgetter("name"))

    @cached_property
    def counts(self) -> ResourceCounts:
        """How many are identical, changed, missing, added."""
        found = dict.fromkeys(ComparisonOutcome, 0)
        for each in self.different:
            found[each.outcome] += 1
        found[ComparisonOutcome.IDENTICAL] = len(self.identical)
        return ResourceCounts(**{outcome.value: count for outcome, count in found.items()})

    @cached_property
    def similar(self) -> int:
        """How many of the changed ones are almost identical."""
        return sum(each.similar for each in self.different)

    @cached_property
    def changed_texts(self) -> int:
        """How many of the changed ones are textual."""
        return sum(each.textual and each.outcome is ComparisonOutcome.CHANGED for each in self.different)

    @cached_property
    def held(self) -> int:
        """How many of the missing ones an archive is known to hold."""
        return sum(each.held for each in self.different)

    @cached_property
    def migrated(self) -> int:
        """How many of the original's came back in another format."""
        return sum(each.migrated is True and each.outcome is ComparisonOutcome.CHANGED for each in self.different)

    @property
    def almost_identical(self) -> float | None:
        """The share of almost identical ones among the changed textual ones; None if there is none."""
        return self.similar / self.changed_texts if self.changed_texts else None

    @property
    def difference(self) -> SiteDifference:
        """The difference vector, nothing weighed."""
        return SiteDifference.of(self.counts)

    @property
    def levels(self) -> tuple[SuccessLevel, ...]:
        """The five levels of success."""
        return success_levels(self.counts, self.similar, self.held)

    @property
    def efficiency(self) -> float | None:
        """Recovered resources for each request; None if nobody counted."""
        return self.counts.recovered / self.requests if self.requests else None

    @property
    def efficiency_without_added(self) -> float | None:
        """The same, where only what the original has is counted."""
        return self.counts.back / self.requests if self.requests else None

    @cached_property
    def unread(self) -> Mapping[str, tuple[int, str]]:
        """Texts that could not be compared: how many, by the reason, with the first address of each."""
        found: dict[str, tuple[int, str]] = {}
        for each in self.different:
            if each.similarity is not None and each.similarity.reason is not None:
                count, first = found.get(each.similarity.reason, (0, each.uri))
                found[each.similarity.reason] = (count + 1, first)
        return dict(sorted(found.items()))

    @property
    def partial(self) -> int:
        """How many texts were so long that only their beginnings were compared."""
        return sum(each.similarity is not None and each.similarity.partial for each in self.different)

    def weigh(self, rules: PenaltyRules) -> SiteDifference:
        """Return the difference vector with the penalties that the rules have for each resource."""
        weights: dict[ComparisonOutcome, list[float]] = {outcome: [] for outcome in ComparisonOutcome}
        for each in self.different:
            penalties = rules.penalties_for(each.mime, each.uri)
            weights[each.outcome].append(float(getattr(penalties, each.outcome.value)))
        return weigh_difference(
            weights[ComparisonOutcome.CHANGED],
            weights[ComparisonOutcome.MISSING],
            weights[ComparisonOutcome.ADDED],
            self.counts,
        )


def compare_sites(
    original: Site,
    recovered: Site,
    similarity: Callable[[SiteResource, SiteResource], TextSimilarity],
    *,
    similar_at: float = SIMILARITY_THRESHOLD,
    on_pair: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Match two sites by the names of their resources; return what became of each.

    likeness: how much text two versions of a resource have in common; it is called from several threads, only for
        changed ones that are textual, and must not raise. `unlost.comparison.compare` has one.
    on_pair: told how many of how many such pairs have been looked at.
    """
    first, second = original.resources, recovered.resources
    versions = _versions(second)
    identical = {name for name, version in _versions(first).items() if versions.get(name) == version}
    different = [
        _match_resource(name, first.get(name), second.get(name), recovered.listed)
        for name in sorted({*first, *second} - identical)
    ]
    pairs = [at for at, each in enumerate(different) if each.textual and each.outcome is ComparisonOutcome.CHANGED]
    for done, (at, found) in enumerate(_compute_in_order(similarity, different, pairs), start=1):
        different[at] = _with_similarity(different[at], found, similar_at)
        if on_pair is not None:
            on_pair(done, len(pairs))
    return Comparison(first, second, identical, tuple(different), similar_at, recovered.requests)


def _versions(resources: SiteResources) -> dict[str, tuple[bytes, int]]:
    """Return for each name what two copies have in common if and only if they are identical."""
    columns = resources.columns()
    return dict(zip(columns.names, zip(columns.digests, columns.sizes, strict=True), strict=True))


def _match_resource(
    name: str, first: SiteResource | None, second: SiteResource | None, listed: Collection[str] = frozenset()
) -> ComparedResource:
    """Return what became of a resource. listed: the names of what archives are known to hold."""
    if first is None or second is None:
        found = first or second
        textual = found is not None and is_textual(likely_type(found))
        if second is None:
            return ComparedResource(name, ComparisonOutcome.MISSING, first, None, textual, held=name in listed)
        return ComparedResource(name, ComparisonOutcome.ADDED, None, second, textual, migrated=second.migrated)
    textual = is_textual(likely_type(first)) or (first.mime is None and is_textual(likely_type(second)))
    if first.digest == second.digest and first.size == second.size:
        return ComparedResource(name, ComparisonOutcome.IDENTICAL, first, second, textual, migrated=False)
    migrated = is_other_format(first, second) if second.migrated is None else second.migrated
    return ComparedResource(name, ComparisonOutcome.CHANGED, first, second, textual, migrated=migrated)


def _with_similarity(each: ComparedResource, found: TextSimilarity, similar_at: float) -> ComparedResource:
    similar = found.share is not None and found.share >= similar_at
    return each._replace(similarity=found, similar=similar)


def _compute_in_order(
    likeness: Callable[[SiteResource, SiteResource], TextSimilarity],
    different: list[ComparedResource],
    pairs: list[int],
) -> Iterator[tuple[int, TextSimilarity]]:
    """Yield what was found for each pair, in order, looked at by some threads."""
    threads = min(_THREADS, os.cpu_count() or 1)
    waiting: deque[tuple[int, Future[TextSimilarity]]] = deque()
    pool = ThreadPoolExecutor(threads, "compare")
    is_done = False
    try:
        for at in pairs:
            first, second = different[at].original, different[at].recovered
            assert first is not None, "a changed one is in both"  # noqa: S101
            assert second is not None, "a changed one is in both"  # noqa: S101
            waiting.append((at, pool.submit(likeness, first, second)))
            if len(waiting) >= threads * _QUEUED_PER_THREAD:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
        is_done = True
    finally:
        # Whoever interrupts waits for nothing: documents may take long, and are given up by whoever reads them.
        pool.shutdown(wait=is_done, cancel_futures=True)


_WORD = re.compile(r"[^\W_]")
_MAX_BODY_BYTES = 32 << 20  # of a body: one is in memory for each thread; pages and most documents are far below it


class TextComparer:
    """Looks at the text of resources of two sites. Use it as a context manager; it may be used by several threads."""

    def __init__(self, original: Site, recovered: Site) -> None:
        self._original = original
        self._recovered = recovered
        self._documents = DocumentReader()

    def __enter__(self) -> Self:
        """Get ready to read documents."""
        self._documents.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what reads documents."""
        self._documents.__exit__(kind, error, trace)

    def similarity(self, original: SiteResource, recovered: SiteResource) -> TextSimilarity:
        """Return how much text an original and its recovered version have in common; why not, if that is not known.

        Never raises for what is in them. Two texts without any word, such as scanned pages, are `no-words`: nothing
        says that they are alike.
        """
        first = self._text(self._original, original)
        if isinstance(first, str):
            return TextSimilarity(None, first)
        second = self._text(self._recovered, recovered)
        if isinstance(second, str):
            return TextSimilarity(None, second)
        partial = first.cut or second.cut
        if not _WORD.search(first.text) and not _WORD.search(second.text):
            return TextSimilarity(None, "no-words", partial)
        return TextSimilarity(text_resemblance(first.text, second.text), None, partial)

    def _text(self, site: Site, resource: SiteResource) -> ExtractedText | str:
        """Return the text of a resource, or in one word why there is none."""
        if resource.size > _MAX_BODY_BYTES:
            return "too-big"
        try:
            body = site.read_body(resource, _MAX_BODY_BYTES)
            if body.is_truncated:
                return "too-big"
            mime = likely_type(resource)
            kind = detect_document_kind(body.content, mime, resource.uri)
            if kind is not None:
                return self._documents.extract_text(body.content, kind)
            found = extract_text(body.content, mime, resource.uri, body.charset)
        except DocumentError as error:
            return error.kind
        except (InputError, OSError):
            return "unreadable"
        return "no-text" if found is None else found
