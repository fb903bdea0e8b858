"""TimeMaps, TimeGates and descriptions of mementos: from what was found to an answer (RFC 7089, MemGator)."""

import asyncio
import math
import re
from collections.abc import Callable, Iterator
from typing import cast

from unlost.aggregate.describing import describe_memento, memento_link_header
from unlost.aggregate.forms import MEDIA_TYPES, TimeMapFormat
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.places import ServiceUrls, DateSpan
from unlost.aggregate.rendering import MEMENTOS_PER_PIECE, serialize_timemap, iter_timemap
from unlost.aggregate.summary import summary_json, summary_text
from unlost.clock import Clock
from unlost.service.answers import (
    NO_STORE,
    WebResponse,
    Header,
    compute_etag,
    encode_header_value,
    matches_etag,
    text_response,
)
from unlost.service.asked import MementoRequest, RequestHeaders
from unlost.service.kept_answers import ResponseCache

TIMEGATE_VARY: Header = (b"vary", b"accept-datetime, prefer")
"""What every answer of a TimeGate has."""

# Also where a request prefers nothing: else a cache would give that answer to one that does.
_VARY_PREFER: Header = (b"vary", b"prefer")
_RECORD_FRAGMENT = re.compile(
    r"#\d+(?:-\d+)?\Z"
)  # as `asking.address_of` names it: servers never see it, and send the whole file
_MAX_FAILED = 100  # archives named in a header

RETRY_SECONDS = 10
"""The `Retry-After` of a 503 where no rate limit and no circuit breaker says when archives admit requests again."""

_OUTCOME_TEXTS = {"not-now": "rate limited or busy", "dormant": "skipped, its circuit breaker is open"}


class TimeMapViews:
    """Makes answers of what was found.

    map_link: the Link to our own MementoMap that every answer has, or nothing. memory: bytes for rendered bodies.
    """

    def __init__(self, clock: Clock, map_link: str = "", memory: int = 1 << 24) -> None:
        self._clock = clock
        self._map_link = map_link
        self._cache = ResponseCache(memory)
        self._views: dict[str, Callable[[MementoRequest, RequestHeaders, AggregateResult], WebResponse]] = {
            "timemap": self._timemap,
            "timegate": self._timegate,
            "memento": self._memento,
            "api": self._memento,
            "summary": self._summary,
        }

    def respond(self, request: MementoRequest, headers: RequestHeaders, found: AggregateResult) -> WebResponse:
        """Return the answer, whole."""
        return self._views[request.endpoint](request, headers, found)

    def not_found_response(self, found: AggregateResult, vary: Header = _VARY_PREFER) -> WebResponse:
        """Return the response where no memento was found: 404 if all routed archives answered, else 503.

        A 503 has no `X-Memento-Count`: the number is unknown.
        """
        failed = found.failures
        if not failed:
            return text_response(404, f"No mementos of {found.uri} were found", *self.common_headers(found, vary=vary))
        seconds = RETRY_SECONDS if found.retry_at is None else max(1, math.ceil(found.retry_at - self._clock.now()))
        reasons = ", ".join(
            f"{report.archive}: {_OUTCOME_TEXTS.get(report.outcome, report.outcome)}" for report in failed[:_MAX_FAILED]
        )
        message = (
            f"No mementos of {found.uri[:1_000]} were found, but {len(failed)} of {len(found.reports)} archives did "
            f"not answer ({reasons})"
        )
        headers = [header for header in self._stable_headers(found) if header[0] != b"x-memento-count"]
        return text_response(503, message, *headers, NO_STORE, (b"retry-after", b"%d" % seconds), vary)

    def common_headers(self, found: AggregateResult, links: str = "", vary: Header = _VARY_PREFER) -> list[Header]:
        """Return the headers of every answer that is made of what was found. links: the value of Link, if there is."""
        return [*self._stable_headers(found, links), *self._cache_headers(found), vary]

    def _stable_headers(self, found: AggregateResult, links: str = "") -> list[Header]:
        """Return the headers that are the same for as long as what was found is kept."""
        is_counted = not found.is_selection or not len(found.mementos)  # a TimeGate does not say how many there are
        headers: list[Header] = [(b"x-memento-count", b"%d" % len(found.mementos))] if is_counted else []
        if failed := found.failures:
            named = ", ".join(f"{report.archive}={report.outcome}" for report in failed[:_MAX_FAILED])
            headers.append((b"x-archives-failed", encode_header_value(named)))
        links = ", ".join(each for each in (links, self._map_link) if each)
        return [*headers, (b"link", encode_header_value(links))] if links else headers

    def _cache_headers(self, found: AggregateResult) -> list[Header]:
        """Return the headers that are of the moment."""
        seconds = math.floor(found.expires_at - self._clock.now())
        return [(b"cache-control", b"max-age=%d" % seconds if seconds > 0 else b"no-cache")]

    def _timemap(self, asked: MementoRequest, terms: RequestHeaders, found: AggregateResult) -> WebResponse:
        span = asked.span
        if not len(found.mementos) or (span and not len(found.mementos.between(*span))):
            return self.not_found_response(found)
        form = f"{'-'.join(span)} {asked.form}" if span else asked.form
        wanted = DateSpan(*span) if span else None
        if len(found.mementos) > MEMENTOS_PER_PIECE:
            return self._streamed_response(
                form, terms, found, iter_timemap(found, terms.urls, _format_of(asked), wanted)
            )
        return self._cached_response(
            form, terms, found, lambda: serialize_timemap(found, terms.urls, _format_of(asked), wanted)
        )

    def _summary(self, asked: MementoRequest, terms: RequestHeaders, found: AggregateResult) -> WebResponse:
        if not len(found.mementos):
            return self.not_found_response(found)
        form = f"summary {asked.form}"
        if asked.form == "text":
            return self._cached_response(form, terms, found, lambda: summary_text(found))
        return self._cached_response(form, terms, found, lambda: summary_json(found, terms.urls))

    def _memento(self, asked: MementoRequest, terms: RequestHeaders, found: AggregateResult) -> WebResponse:
        place = found.closest_index(asked.date)
        if place is None:
            return self.not_found_response(found)
        if not asked.form:
            return self._redirect(place, terms, found)
        form = f"{place} {asked.form}"
        return self._cached_response(
            form, terms, found, lambda: describe_memento(found, place, terms.urls, _format_of(asked))
        )

    def _timegate(self, asked: MementoRequest, terms: RequestHeaders, found: AggregateResult) -> WebResponse:
        place = found.closest_index(asked.date)
        if place is None:
            return self.not_found_response(found, TIMEGATE_VARY)
        return self._redirect(place, terms, found, TIMEGATE_VARY)

    def _redirect(
        self, place: int, terms: RequestHeaders, found: AggregateResult, vary: Header = _VARY_PREFER
    ) -> WebResponse:
        def render() -> tuple[bytes, list[Header]]:
            target = resolve_memento_url(found, place, terms.urls)
            links = memento_link_header(found, place, terms.urls)
            answer = text_response(
                302, target, (b"location", encode_header_value(target)), *self._stable_headers(found, links)
            )
            return answer.body, answer.headers

        form = f"{place} to {found.mementos[place].datetime}" if found.is_selection else f"{place} to"
        rendered = self._cache.get_or_render(found, terms.options, form, terms.urls.base, render)
        return WebResponse(302, rendered.body, [*rendered.headers, *self._cache_headers(found), vary])

    def _streamed_response(
        self, form: str, terms: RequestHeaders, found: AggregateResult, pieces: Iterator[bytes]
    ) -> WebResponse:
        """Return a TimeMap that is rendered while it is sent."""
        etag = b"W/" + compute_etag(f"{found.digest} {form} {terms.urls.base}".encode())
        headers = [*self._stable_headers(found), *self._cache_headers(found), _VARY_PREFER, (b"etag", etag)]
        if terms.if_none_match is not None and matches_etag(etag, terms.if_none_match):
            return WebResponse(304, b"", headers)
        headers.append((b"content-type", _CONTENT_TYPES[form.rpartition(" ")[2]]))
        return WebResponse(200, b"", headers, pieces)

    def _cached_response(
        self, form: str, terms: RequestHeaders, found: AggregateResult, render: Callable[[], bytes]
    ) -> WebResponse:
        def whole() -> tuple[bytes, list[Header]]:
            return render(), self._stable_headers(found)

        rendered = self._cache.get_or_render(found, terms.options, form, terms.urls.base, whole)
        headers = [*rendered.headers, *self._cache_headers(found), _VARY_PREFER, (b"etag", rendered.etag)]
        if terms.if_none_match is not None and matches_etag(rendered.etag, terms.if_none_match):
            return WebResponse(304, b"", headers)
        headers.append((b"content-type", _CONTENT_TYPES[form.rpartition(" ")[2]]))
        return WebResponse(200, rendered.body, headers)


async def compute_digest(found: AggregateResult) -> None:
    """Compute the digest of what was found, which every response needs, in a thread if that takes long.

    That of a million mementos takes a tenth of a second, for which other requests would wait.
    """
    if len(found.mementos) > MEMENTOS_PER_PIECE:
        await asyncio.to_thread(getattr, found, "digest")


def is_web_url(url: str) -> bool:
    """Return whether a browser sees a copy at its address: not if it is a record in a file, or something else."""
    return url[:8].lower().startswith(("http://", "https://")) and not _RECORD_FRAGMENT.search(url)


def resolve_memento_url(found: AggregateResult, index: int, urls: ServiceUrls) -> str:
    """Return where a browser sees a copy: at its own address, but through us if that is a record in a file."""
    memento = found.mementos[index]
    if is_web_url(memento.uri):
        return memento.uri
    return urls.memento(memento.datetime, found.uri, "proxy")


_CONTENT_TYPES: dict[str, bytes] = {form: media_type.encode() for form, media_type in MEDIA_TYPES.items()}


def _format_of(asked: MementoRequest) -> TimeMapFormat:
    return cast("TimeMapFormat", asked.form)  # which was checked when it was read
