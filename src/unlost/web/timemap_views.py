"""TimeMaps.

TimeGates and descriptions of mementos as responses (RFC 7089, MemGator), with a cache of rendered bodies.
"""

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
    serialize_timemap,
    summary_json,
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


class CachedBody(NamedTuple):
    """A body, its entity tag, the headers that are always the same with it, and when what it was made of was made."""

    body: bytes
    etag: bytes
    headers: tuple[Header, ...]
    made: float


class ResponseCache:
    """Bodies, the least recently wanted forgotten first.

    capacity: bytes that all of them may have together, with headers. What has more than a sixteenth of that is never
        kept.
    """

    def __init__(self, capacity: int = 1 << 24) -> None:
        self._capacity = capacity
        self._bodies: OrderedDict[tuple[str, str, str, RoutingOptions], CachedBody] = OrderedDict()
        self._size = 0

    def get_or_render(
        self,
        found: AggregateResult,
        wish: RoutingOptions,
        form: str,
        base: str,
        render: Callable[[], tuple[bytes, list[Header]]],
    ) -> CachedBody:
        """Return the body for what was found: the one that is kept, if it was made from the same."""
        key = (found.uri, form, base, wish)
        kept = self._bodies.get(key)
        if kept is not None:
            if kept.made == found.created_at:
                self._bodies.move_to_end(key)
                return kept
            self._evict(key)
        body, headers = render()
        fresh = CachedBody(body, _etag(body, key, found), tuple(headers), found.created_at)
        weight = _weight(key, fresh)
        if weight <= self._capacity >> 4:
            self._bodies[key] = fresh
            self._size += weight
            while self._size > self._capacity:
                self._evict(next(iter(self._bodies)))
        return fresh

    def _evict(self, key: tuple[str, str, str, RoutingOptions]) -> None:
        self._size -= _weight(key, self._bodies.pop(key))


def _etag(body: bytes, key: tuple[str, str, str, RoutingOptions], found: AggregateResult) -> bytes:
    """Return the tag of a body. JSON tells how long archives took: a weak one, since that is no other list."""
    _, form, base, _ = key
    return (
        b"W/" + compute_etag(f"{found.digest} {form} {base}".encode()) if form.endswith("json") else compute_etag(body)
    )


def _weight(key: tuple[str, str, str, RoutingOptions], rendered: CachedBody) -> int:
    """Return about how many bytes it takes. Links in headers may be longer than the body, and so may a wish."""
    uri, _, base, wish = key
    texts = len(rendered.body) + len(uri) + len(base) + sum(len(value) for _, value in rendered.headers)
    return texts + sum(len(each) + 100 for each in wish.archives or ()) + 1_000  # what the objects themselves take


TIMEGATE_VARY: Header = (b"vary", b"accept-datetime, prefer")
"""What every answer of a TimeGate has."""
# Also where a request prefers nothing: else a cache would give that answer to one that does.
_VARY_PREFER: Header = (b"vary", b"prefer")
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


def resolve_memento_url(found: AggregateResult, index: int, urls: ServiceUrls) -> str:
    """Return where a browser sees a copy: at its own address, but through us if that is a record in a file."""
    memento = found.mementos[index]
    if is_web_url(memento.uri):
        return memento.uri
    return urls.memento(memento.datetime, found.uri, "proxy")


_CONTENT_TYPES: dict[str, bytes] = {form: media_type.encode() for form, media_type in MEDIA_TYPES.items()}


def _format_of(asked: MementoRequest) -> TimeMapFormat:
    return cast("TimeMapFormat", asked.form)  # which was checked when it was read
