"""TimeMaps, TimeGates and memento descriptions as responses (RFC 7089, MemGator), with a cache of rendered bodies."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from unlost.aggregate.models import AggregateResult, RoutingOptions
from unlost.aggregate.request import MementoRequest, RequestHeaders, is_web_url
from unlost.aggregate.serializers import (
    MEDIA_TYPES,
    MEMENTOS_PER_PIECE,
    TimeMapFormat,
    describe_memento,
    iter_timemap,
    memento_link_header,
    memento_summary_json,
    serialize_timemap,
    summary_text,
)
from unlost.aggregate.urls import DateSpan, ServiceUrls
from unlost.clock import Clock
from unlost.web.responses import (
    NO_STORE,
    Header,
    WebResponse,
    compute_etag,
    encode_header_value,
    matches_etag,
    text_response,
)

TIMEGATE_VARY: Header = (b"vary", b"accept-datetime, prefer")
"""`Vary` header of TimeGate responses."""
# Sent for requests without a preference, too; otherwise a cache would reuse their responses for those with one.
_VARY_PREFER: Header = (b"vary", b"prefer")
_MAX_FAILED = 100  # archives named in a header
RETRY_SECONDS = 10
"""`Retry-After` of a 503 response if neither a rate limit nor a circuit breaker determines it."""
_OUTCOME_TEXTS = {"not-now": "rate limited or busy", "dormant": "skipped, its circuit breaker is open"}
_CONTENT_TYPES: dict[str, bytes] = {form: media_type.encode() for form, media_type in MEDIA_TYPES.items()}


class CachedBody(NamedTuple):
    """A rendered body.

    Attributes:
        body: The body.
        etag: Its entity tag.
        headers: Headers that depend only on the result.
        created_at: Creation time of the result.
    """

    body: bytes
    etag: bytes
    headers: tuple[Header, ...]
    created_at: float


class ResponseCache:
    """An LRU cache of rendered bodies.

    `capacity` limits the total size in bytes, including headers. Bodies above a sixteenth of it are not cached.
    """

    def __init__(self, capacity: int = 1 << 24) -> None:
        self._capacity = capacity
        self._bodies: OrderedDict[tuple[str, str, str, RoutingOptions], CachedBody] = OrderedDict()
        self._size = 0

    def get_or_render(
        self,
        result: AggregateResult,
        options: RoutingOptions,
        form: str,
        base: str,
        render: Callable[[], tuple[bytes, list[Header]]],
    ) -> CachedBody:
        """Return the cached body if it was rendered from the same result, else render and cache it."""
        key = (result.uri, form, base, options)
        cached = self._bodies.get(key)
        if cached is not None:
            if cached.created_at == result.created_at:
                self._bodies.move_to_end(key)
                return cached
            self._evict(key)
        body, headers = render()
        fresh = CachedBody(body, _etag(body, key, result), tuple(headers), result.created_at)
        weight = _weight(key, fresh)
        if weight <= self._capacity >> 4:
            self._bodies[key] = fresh
            self._size += weight
            while self._size > self._capacity:
                self._evict(next(iter(self._bodies)))
        return fresh

    def _evict(self, key: tuple[str, str, str, RoutingOptions]) -> None:
        self._size -= _weight(key, self._bodies.pop(key))


def _etag(body: bytes, key: tuple[str, str, str, RoutingOptions], result: AggregateResult) -> bytes:
    """Return the entity tag of a body: a weak one for JSON, which contains durations of requests."""
    _, form, base, _ = key
    return (
        b"W/" + compute_etag(f"{result.digest} {form} {base}".encode()) if form.endswith("json") else compute_etag(body)
    )


def _weight(key: tuple[str, str, str, RoutingOptions], rendered: CachedBody) -> int:
    """Return the approximate size in bytes. Link headers and routing options may be longer than the body."""
    uri, _, base, options = key
    text_bytes = len(rendered.body) + len(uri) + len(base) + sum(len(value) for _, value in rendered.headers)
    return text_bytes + sum(len(each) + 100 for each in options.archives or ()) + 1_000  # overhead of the objects


class TimeMapViews:
    """Renders results as responses.

    Args:
        clock: Source of time.
        map_link: Value of the Link header to the published MementoMap, or an empty string.
        memory: Bytes for cached bodies.
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

    def respond(self, request: MementoRequest, headers: RequestHeaders, result: AggregateResult) -> WebResponse:
        """Return the response to a request."""
        return self._views[request.endpoint](request, headers, result)

    def not_found_response(self, result: AggregateResult, vary: Header = _VARY_PREFER) -> WebResponse:
        """Return the response if no memento was found: 404 if all routed archives responded, else 503.

        Some clients save a page to an archive when an aggregator responds 404, so a wrong 404 would write to archives.
        A 503 has no `X-Memento-Count`, since clients read a 0 as "none".
        """
        failed = result.failures
        if not failed:
            return text_response(
                404, f"No mementos of {result.uri} were found", *self.common_headers(result, vary=vary)
            )
        seconds = RETRY_SECONDS if result.retry_at is None else max(1, math.ceil(result.retry_at - self._clock.now()))
        reasons = ", ".join(
            f"{report.archive}: {_OUTCOME_TEXTS.get(report.outcome, report.outcome)}" for report in failed[:_MAX_FAILED]
        )
        message = (
            f"No mementos of {result.uri[:1_000]} were found, but {len(failed)} of {len(result.reports)} archives did "
            f"not answer ({reasons})"
        )
        headers = [header for header in self._stable_headers(result) if header[0] != b"x-memento-count"]
        return text_response(503, message, *headers, NO_STORE, (b"retry-after", b"%d" % seconds), vary)

    def common_headers(self, result: AggregateResult, links: str = "", vary: Header = _VARY_PREFER) -> list[Header]:
        """Return the headers of all responses with a result. `links` is the value of the Link header, if any."""
        return [*self._stable_headers(result, links), *self._cache_headers(result), vary]

    def _stable_headers(self, result: AggregateResult, links: str = "") -> list[Header]:
        """Return the headers that are the same as long as the result is cached."""
        is_counted = not result.is_selection or not len(result.mementos)  # the total is unknown for a TimeGate
        headers: list[Header] = [(b"x-memento-count", b"%d" % len(result.mementos))] if is_counted else []
        if failed := result.failures:
            named = ", ".join(f"{report.archive}={report.outcome}" for report in failed[:_MAX_FAILED])
            headers.append((b"x-archives-failed", encode_header_value(named)))
        links = ", ".join(each for each in (links, self._map_link) if each)
        return [*headers, (b"link", encode_header_value(links))] if links else headers

    def _cache_headers(self, result: AggregateResult) -> list[Header]:
        """Return the headers that depend on the current time."""
        seconds = math.floor(result.expires_at - self._clock.now())
        return [(b"cache-control", b"max-age=%d" % seconds if seconds > 0 else b"no-cache")]

    def _timemap(self, request: MementoRequest, headers: RequestHeaders, result: AggregateResult) -> WebResponse:
        span = request.span
        if not len(result.mementos) or (span and not len(result.mementos.between(*span))):
            return self.not_found_response(result)
        form = f"{'-'.join(span)} {request.form}" if span else request.form
        date_span = DateSpan(*span) if span else None
        if len(result.mementos) > MEMENTOS_PER_PIECE:
            return self._streamed_response(
                form, headers, result, iter_timemap(result, headers.urls, _format_of(request), date_span)
            )
        return self._cached_response(
            form, headers, result, lambda: serialize_timemap(result, headers.urls, _format_of(request), date_span)
        )

    def _summary(self, request: MementoRequest, headers: RequestHeaders, result: AggregateResult) -> WebResponse:
        if not len(result.mementos):
            return self.not_found_response(result)
        form = f"summary {request.form}"
        if request.form == "text":
            return self._cached_response(form, headers, result, lambda: summary_text(result))
        return self._cached_response(form, headers, result, lambda: memento_summary_json(result, headers.urls))

    def _memento(self, request: MementoRequest, headers: RequestHeaders, result: AggregateResult) -> WebResponse:
        index = result.closest_index(request.date)
        if index is None:
            return self.not_found_response(result)
        if not request.form:
            return self._redirect(index, headers, result)
        form = f"{index} {request.form}"
        return self._cached_response(
            form, headers, result, lambda: describe_memento(result, index, headers.urls, _format_of(request))
        )

    def _timegate(self, request: MementoRequest, headers: RequestHeaders, result: AggregateResult) -> WebResponse:
        index = result.closest_index(request.date)
        if index is None:
            return self.not_found_response(result, TIMEGATE_VARY)
        return self._redirect(index, headers, result, TIMEGATE_VARY)

    def _redirect(
        self, index: int, headers: RequestHeaders, result: AggregateResult, vary: Header = _VARY_PREFER
    ) -> WebResponse:
        def render() -> tuple[bytes, list[Header]]:
            target = resolve_memento_url(result, index, headers.urls)
            links = memento_link_header(result, index, headers.urls)
            response = text_response(
                302, target, (b"location", encode_header_value(target)), *self._stable_headers(result, links)
            )
            return response.body, response.headers

        form = f"{index} to {result.mementos[index].datetime}" if result.is_selection else f"{index} to"
        rendered = self._cache.get_or_render(result, headers.options, form, headers.urls.base, render)
        return WebResponse(302, rendered.body, [*rendered.headers, *self._cache_headers(result), vary])

    def _streamed_response(
        self, form: str, headers: RequestHeaders, result: AggregateResult, pieces: Iterator[bytes]
    ) -> WebResponse:
        """Return a TimeMap that is rendered while it is sent."""
        etag = b"W/" + compute_etag(f"{result.digest} {form} {headers.urls.base}".encode())
        response_headers = [*self._stable_headers(result), *self._cache_headers(result), _VARY_PREFER, (b"etag", etag)]
        if headers.if_none_match is not None and matches_etag(etag, headers.if_none_match):
            return WebResponse(304, b"", response_headers)
        response_headers.append((b"content-type", _CONTENT_TYPES[form.rpartition(" ")[2]]))
        return WebResponse(200, b"", response_headers, pieces)

    def _cached_response(
        self, form: str, headers: RequestHeaders, result: AggregateResult, render: Callable[[], bytes]
    ) -> WebResponse:
        def render_all() -> tuple[bytes, list[Header]]:
            return render(), self._stable_headers(result)

        rendered = self._cache.get_or_render(result, headers.options, form, headers.urls.base, render_all)
        response_headers = [
            *rendered.headers, *self._cache_headers(result), _VARY_PREFER, (b"etag", rendered.etag)
        ]  # fmt: skip
        if headers.if_none_match is not None and matches_etag(rendered.etag, headers.if_none_match):
            return WebResponse(304, b"", response_headers)
        response_headers.append((b"content-type", _CONTENT_TYPES[form.rpartition(" ")[2]]))
        return WebResponse(200, rendered.body, response_headers)


async def compute_digest(result: AggregateResult) -> None:
    """Compute the digest of a result, which all responses need, in a thread if it is large.

    The digest of a million mementos takes 0.1 s, which would delay other requests.
    """
    if len(result.mementos) > MEMENTOS_PER_PIECE:
        await asyncio.to_thread(getattr, result, "digest")


def resolve_memento_url(result: AggregateResult, index: int, urls: ServiceUrls) -> str:
    """Return the URL to redirect to: the memento's own, or that of the replay proxy if the memento is in a file."""
    memento = result.mementos[index]
    if is_web_url(memento.uri):
        return memento.uri
    return urls.memento(memento.datetime, result.uri, "proxy")


def _format_of(request: MementoRequest) -> TimeMapFormat:
    return cast("TimeMapFormat", request.form)  # validated when the request was parsed
