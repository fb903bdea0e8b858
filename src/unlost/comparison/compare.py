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
from unlost.comparison.site import Site, SiteResource, SiteResources, declared_media_type, is_other_format, likely_type
from unlost.documents import DocumentReader, detect_document_kind
from unlost.errors import DocumentError, InputError
from unlost.html.text import ExtractedText, extract_text, text_resemblance
from unlost.media_types import is_textual

SIMILARITY_THRESHOLD = 0.75
"""Minimum share of common shingles of texts that are almost identical, as defined in the dissertation."""
_THREADS = 4  # maximum, since each may have a large body in memory
_QUEUED_PER_THREAD = 8  # pairs queued for each thread, to keep it busy with bounded memory


class ComparisonOutcome(StrEnum):
    """The outcome for a resource."""

    IDENTICAL = "identical"
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class TextSimilarity:
    """Similarity of the texts of two versions of a resource.

    Attributes:
        share: Share of common 10-word shingles, from 0 to 1; None if unknown.
        reason: Error code if `share` is None: `encrypted`, `damaged`, `too-long`, `too-big`, `no-ghostscript`,
            `no-text`, `no-words`, `unreadable`.
        partial: Whether only the beginning of a very long text was compared.
    """

    share: float | None
    reason: str | None = None
    partial: bool = False


class ComparedResource(NamedTuple):
    """The outcome for one resource. A named tuple, as is `SiteResource`.

    Attributes:
        name: Name by which the resources are matched.
        outcome: The outcome.
        original: The resource in the original site; None if added.
        recovered: The resource in the recovered site; None if missing.
        textual: Whether it is text, PDF, PostScript or an Office document.
        similarity: Similarity of a changed textual resource; None for all others.
        similar: Whether it is almost identical.
        migrated: Whether a recovered resource is in another format than the original; None if unknown.
        held: Whether it is missing although an archive is known to hold it.
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
        """The original resource; the recovered one if it was added."""
        resource = self.original or self.recovered
        assert resource is not None, "it is in one of the two"  # noqa: S101
        return resource

    @property
    def uri(self) -> str:
        """The URL in the original's spelling."""
        return self.resource.uri

    @property
    def mime(self) -> str:
        """The media type in the original; `unknown` if it was not declared."""
        return declared_media_type(self.resource)


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two sites.

    Attributes:
        original: Resources of the original site.
        recovered: Resources of the recovered site.
        identical: Names of the identical resources. Most resources are, and only their names are stored.
        different: All other resources, by name.
        similar_at: Minimum share of common shingles of texts that are almost identical.
        requests: Number of requests that the recovery took; None if unknown.
    """

    original: SiteResources
    recovered: SiteResources
    identical: Collection[str]
    different: tuple[ComparedResource, ...]
    similar_at: float = SIMILARITY_THRESHOLD
    requests: int | None = None

    def resources(self) -> Iterator[ComparedResource]:
        """Yield all resources by name."""
        identical = (
            _match_resource(name, self.original[name], self.recovered[name]) for name in sorted(self.identical)
        )
        return merge(identical, self.different, key=attrgetter("name"))

    @cached_property
    def counts(self) -> ResourceCounts:
        """Number of identical, changed, missing and added resources."""
        counts = dict.fromkeys(ComparisonOutcome, 0)
        for each in self.different:
            counts[each.outcome] += 1
        counts[ComparisonOutcome.IDENTICAL] = len(self.identical)
        return ResourceCounts(**{outcome.value: count for outcome, count in counts.items()})

    @cached_property
    def similar(self) -> int:
        """Number of changed resources that are almost identical."""
        return sum(each.similar for each in self.different)

    @cached_property
    def changed_texts(self) -> int:
        """Number of changed resources that are textual."""
        return sum(each.textual and each.outcome is ComparisonOutcome.CHANGED for each in self.different)

    @cached_property
    def held(self) -> int:
        """Number of missing resources that an archive is known to hold."""
        return sum(each.held for each in self.different)

    @cached_property
    def migrated(self) -> int:
        """Number of resources that were recovered in another format."""
        return sum(each.migrated is True and each.outcome is ComparisonOutcome.CHANGED for each in self.different)

    @property
    def almost_identical(self) -> float | None:
        """Share of almost identical resources among the changed textual ones; None if there are none."""
        return self.similar / self.changed_texts if self.changed_texts else None

    @property
    def difference(self) -> SiteDifference:
        """The difference vector without penalties."""
        return SiteDifference.of(self.counts)

    @property
    def levels(self) -> tuple[SuccessLevel, ...]:
        """The five levels of success."""
        return success_levels(self.counts, self.similar, self.held)

    @property
    def efficiency(self) -> float | None:
        """Recovered resources per request; None if the number of requests is unknown."""
        return self.counts.recovered / self.requests if self.requests else None

    @property
    def efficiency_without_added(self) -> float | None:
        """The efficiency without added resources."""
        return self.counts.back / self.requests if self.requests else None

    @cached_property
    def unread(self) -> Mapping[str, tuple[int, str]]:
        """Texts that could not be compared: their number and the first URL, by error code."""
        unread: dict[str, tuple[int, str]] = {}
        for each in self.different:
            if each.similarity is not None and each.similarity.reason is not None:
                count, first = unread.get(each.similarity.reason, (0, each.uri))
                unread[each.similarity.reason] = (count + 1, first)
        return dict(sorted(unread.items()))

    @property
    def partial(self) -> int:
        """Number of texts of which only the beginning was compared."""
        return sum(each.similarity is not None and each.similarity.partial for each in self.different)

    def weigh(self, rules: PenaltyRules) -> SiteDifference:
        """Return the difference vector with the penalties that the rules assign to each resource."""
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
    """Match two sites by the names of their resources.

    Args:
        original: The original site.
        recovered: The recovered site.
        similarity: Compares the texts of two versions, such as `TextComparer.similarity`. Called from several threads,
            only for changed textual resources; must not raise.
        similar_at: Minimum share of common shingles of texts that are almost identical.
        on_pair: Called with the number of compared pairs and their total.
    """
    first, second = original.resources, recovered.resources
    versions = _versions(second)
    identical = {name for name, version in _versions(first).items() if versions.get(name) == version}
    different = [
        _match_resource(name, first.get(name), second.get(name), recovered.listed)
        for name in sorted({*first, *second} - identical)
    ]
    positions = [
        position
        for position, each in enumerate(different)
        if each.textual and each.outcome is ComparisonOutcome.CHANGED
    ]
    for done, (position, result) in enumerate(_compute_in_order(similarity, different, positions), start=1):
        different[position] = _with_similarity(different[position], result, similar_at)
        if on_pair is not None:
            on_pair(done, len(positions))
    return Comparison(first, second, identical, tuple(different), similar_at, recovered.requests)


def _versions(resources: SiteResources) -> dict[str, tuple[bytes, int]]:
    """Return digest and size of each resource by name; only identical versions have the same."""
    columns = resources.columns()
    return dict(zip(columns.names, zip(columns.digests, columns.sizes, strict=True), strict=True))


def _match_resource(
    name: str, first: SiteResource | None, second: SiteResource | None, listed: Collection[str] = frozenset()
) -> ComparedResource:
    """Return the outcome for a resource.

    Args:
        name: Name of the resource.
        first: The resource in the original site; None without one.
        second: The resource in the recovered site; None without one.
        listed: Names of resources that archives are known to hold.
    """
    if first is None or second is None:
        resource = first or second
        textual = resource is not None and is_textual(likely_type(resource))
        if second is None:
            return ComparedResource(name, ComparisonOutcome.MISSING, first, None, textual, held=name in listed)
        return ComparedResource(name, ComparisonOutcome.ADDED, None, second, textual, migrated=second.migrated)
    textual = is_textual(likely_type(first)) or (first.mime is None and is_textual(likely_type(second)))
    if first.digest == second.digest and first.size == second.size:
        return ComparedResource(name, ComparisonOutcome.IDENTICAL, first, second, textual, migrated=False)
    migrated = is_other_format(first, second) if second.migrated is None else second.migrated
    return ComparedResource(name, ComparisonOutcome.CHANGED, first, second, textual, migrated=migrated)


def _with_similarity(resource: ComparedResource, similarity: TextSimilarity, similar_at: float) -> ComparedResource:
    similar = similarity.share is not None and similarity.share >= similar_at
    return resource._replace(similarity=similarity, similar=similar)


def _compute_in_order(
    similarity: Callable[[SiteResource, SiteResource], TextSimilarity],
    different: list[ComparedResource],
    positions: list[int],
) -> Iterator[tuple[int, TextSimilarity]]:
    """Yield the similarity of each pair in order, computed by several threads."""
    threads = min(_THREADS, os.cpu_count() or 1)
    pending: deque[tuple[int, Future[TextSimilarity]]] = deque()
    pool = ThreadPoolExecutor(threads, "compare")
    is_complete = False
    try:
        for position in positions:
            first, second = different[position].original, different[position].recovered
            assert first is not None, "a changed one is in both"  # noqa: S101
            assert second is not None, "a changed one is in both"  # noqa: S101
            pending.append((position, pool.submit(similarity, first, second)))
            if len(pending) >= threads * _QUEUED_PER_THREAD:
                done, future = pending.popleft()
                yield done, future.result()
        while pending:
            done, future = pending.popleft()
            yield done, future.result()
        is_complete = True
    finally:
        # After an interrupt, threads are not awaited: documents may take long, and their reader aborts them.
        pool.shutdown(wait=is_complete, cancel_futures=True)


_WORD = re.compile(r"[^\W_]")
_MAX_BODY_BYTES = 32 << 20  # each thread has a body in memory; pages and most documents are far smaller


class TextComparer:
    """Compares the text of resources of two sites. A context manager; thread-safe."""

    def __init__(self, original: Site, recovered: Site) -> None:
        self._original = original
        self._recovered = recovered
        self._documents = DocumentReader()

    def __enter__(self) -> Self:
        """Enter the context of the document reader."""
        self._documents.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the document reader."""
        self._documents.__exit__(kind, error, trace)

    def similarity(self, original: SiteResource, recovered: SiteResource) -> TextSimilarity:
        """Return the similarity of two versions of a resource, or why it is unknown. Never raises for their content.

        Two texts without words, such as those of scanned pages, are `no-words`: there is no evidence of similarity.
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
        """Return the text of a resource, or an error code."""
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
            text = extract_text(body.content, mime, resource.uri, body.charset)
        except DocumentError as error:
            return error.kind
        except (InputError, OSError):
            return "unreadable"
        return "no-text" if text is None else text
