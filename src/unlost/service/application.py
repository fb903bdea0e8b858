"""The web application (ASGI): what is asked most is answered before any router, the rest by Starlette."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from unlost.aggregate.found import Found
from unlost.aggregate.places import Places
from unlost.aggregate.wish import LAST, Wish
from unlost.errors import BusyError, DatabaseError, InputError, NotKeptError, UsageError
from unlost.service.address import MAX_TARGET_BYTES
from unlost.service.answers import (
    COMMON,
    HSTS,
    METHODS,
    NO_STORE,
    PREFLIGHT,
    PRIVATE,
    Answer,
    Header,
    Message,
    Receive,
    Scope,
    Send,
    deliver,
    text_answer,
)
from unlost.service.asked import SHAPES, Asked, Terms, asked_in, terms_of
from unlost.service.jobs_router import JobsRouter
from unlost.service.lists import VARY, Lists, compute_digest
from unlost.service.network import network_of
from unlost.service.others import Others
from unlost.service.parts import Parts
from unlost.service.preferences import FRESH_ENOUGH, accepted_date
from unlost.service.proxy import Proxy
from unlost.service.published_map import PATH, RELATION
from unlost.service.refusals import refusal
from unlost.service.requisites import OF_ONE_COPY, preferring, referer_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)
_BEARER: Header = (b"www-authenticate", b"Bearer")
_REDIRECTS = ("timegate", "memento")  # to one memento, so that not all have to be known
_ENDPOINTS = {name.encode(): name for name in SHAPES}


def _keeps_nothing(_uri: str, _wish: Wish) -> Found | None:
    return None


class Application:
    """The service, for any ASGI server. It has no lifespan of its own: whoever made its parts ends them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._finds = parts.finds
        self._clock = parts.clock
        self._metrics = parts.metrics
        self._monitor = parts.monitor
        self._places = Places(parts.root) if parts.root else None
        self._prefix = self._places.prefix if self._places else ""
        self._map_link = f'<{parts.root or ""}{PATH}>; rel="{RELATION}"' if parts.published else ""
        self._kept: Callable[[str, Wish], Found | None] = getattr(parts.finds, "kept", _keeps_nothing)
        self._lists = Lists(parts.clock, self._map_link, parts.memory)
        self._proxy = Proxy(parts.copies, self._lists, parts.clock)
        self._others = Others(parts, self._lists, self._places)
        self._jobs = None if parts.desk is None else JobsRouter(parts, parts.desk, self._places)
        is_secure = parts.root is not None and parts.root.startswith("https://")
        self._secure: tuple[Header, ...] = (HSTS,) if is_secure else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        begun = self._clock.now()
        path: bytes = scope["raw_path"]
        if self._prefix and path.startswith(self._prefix.encode()):
            scope = without_prefix(scope, self._prefix)
            path = scope["raw_path"]
        name, _, rest = path[1:].partition(b"/")
        endpoint = _ENDPOINTS.get(name, "")
        method: str = scope["method"]
        about_jobs = "" if self._jobs is None else self._jobs.takes(path)
        if self._jobs is not None and about_jobs:
            endpoint = "jobs"
            common = COMMON if about_jobs == "api" else PRIVATE
            status = await self._headed(self._jobs.serve, scope, receive, send, common)
        elif name == b"monitor" and not rest:
            endpoint = "monitor"
            status = await self._watch(method, scope, receive, send)
        elif method not in METHODS:
            status = await _sent(text_answer(405, f"expected {', '.join(METHODS)}", PREFLIGHT[0]), method, send)
        elif method == "OPTIONS":
            status = await _sent(Answer(204, b"", list(PREFLIGHT)), method, send)
        elif len(path) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            status = await _sent(text_answer(414, f"expected at most {MAX_TARGET_BYTES} bytes"), method, send)
        elif endpoint and not (endpoint == "api" and rest == b"find"):
            status = await self._page(endpoint, rest, scope, send)
        else:
            status, endpoint = await self._other(scope, receive, send)
        seconds = self._clock.now() - begun
        self._metrics.request(endpoint or "other", status, seconds)
        if self._monitor.readers:
            # Without the path: it names a page that a user looks up, or opens a job.
            self._monitor.publish("request", endpoint=endpoint or "other", status=status, seconds=seconds)

    async def _watch(self, method: str, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer a request for events, which need the token of an administrator where jobs are served."""
        answer = None
        if method == "OPTIONS":
            answer = Answer(204, b"", [PREFLIGHT[0]])
        elif method not in METHODS:
            answer = text_answer(405, f"expected {', '.join(METHODS)}", PREFLIGHT[0])
        elif self._parts.desk is not None:
            authorization = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            try:
                if await self._parts.desk.admin(authorization) is None:
                    answer = text_answer(401, "expected the token of an administrator", _BEARER)
            except DatabaseError:
                answer = text_answer(503, "the database of jobs cannot be reached", (b"retry-after", b"5"))
        if answer is None:
            return await self._monitor.follow(method, receive, send, self._client(scope))
        await deliver(answer, method, send, PRIVATE)
        return answer.status

    def _client(self, scope: Scope) -> str:
        """Return whence a request comes; behind a proxy that is only told where recoveries are ordered."""
        if self._parts.desk is not None:
            from starlette.requests import HTTPConnection  # noqa: PLC0415  only where there are jobs

            return self._parts.desk.clients.code(HTTPConnection(scope))
        return network_of(scope["client"][0] if scope.get("client") else "")

    async def _page(self, endpoint: str, rest: bytes, scope: Scope, send: Send) -> int:
        """Answer a request that has a page's address in its path; return the status."""
        try:
            asked = asked_in(endpoint, rest, scope["query_string"])
            terms = terms_of(scope, self._places, self._parts.wish)
            if endpoint == "timegate" and terms.accept_datetime is not None:
                asked.date = accepted_date(terms.accept_datetime)
            referer = b""
            if self._parts.by_page and endpoint in OF_ONE_COPY:
                send, referer = _varying(send), referer_of(scope)
            found = await self._found(asked, terms, referer)
            await compute_digest(found)
            if asked.form == "proxy":
                return await self._proxy.serve(asked, terms, found, scope["method"], send)
            answer = self._lists.answer(asked, terms, found)
        except (InputError, UsageError, NotKeptError, BusyError) as error:
            answer = refusal(error)
            if endpoint == "timegate":
                answer.headers.append(VARY)
        except Exception:  # noqa: BLE001  whatever it is, the client is told, and the log tells the rest
            _log.exception("a request for %s failed", endpoint)
            answer = text_answer(500, "A fault of ours; it has been logged", NO_STORE)
        return await _sent(answer, scope["method"], send)

    async def _found(self, asked: Asked, terms: Terms, referer: bytes) -> Found:
        if referer and (first := preferring(asked, terms, referer, self._kept)) is not None:
            found = await self._found_by(asked, terms, first)
            if found.mementos:
                return found
            # The page's archive has it not: others may.
        return await self._found_by(asked, terms, terms.wish)

    async def _found_by(self, asked: Asked, terms: Terms, wish: Wish) -> Found:
        found = self._kept(asked.uri, wish) if terms.freshness is FRESH_ENOUGH else None
        if found is None:
            if asked.endpoint in _REDIRECTS and not asked.form:
                wish = replace(wish, selects=asked.date or LAST)
            found = await self._finds.find(asked.uri, wish, terms.freshness)
            self._metrics.found(found.from_cache)
        else:
            self._metrics.found(True)
        # It may have been found under another spelling of the same address.
        return found if found.uri == asked.uri else replace(found, uri=asked.uri)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> tuple[int, str]:
        """Let Starlette answer; return the status, and the endpoint if it is one."""
        endpoint = ""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal endpoint
            endpoint = await self._others.serve(scope, receive, send)

        status = await self._headed(answer, scope, receive, send)
        return status, endpoint

    async def _headed(
        self,
        answer: "Callable[[Scope, Receive, Send], Awaitable[None]]",
        scope: Scope,
        receive: Receive,
        send: Send,
        common: tuple[Header, ...] = COMMON,
    ) -> int:
        """Have a request answered with the headers that all answers have; return the status."""
        status = 500

        async def with_common_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*common, *self._secure, *map(self._prefixed, message["headers"])]
                # Lists that were asked for by parameters have it already.
                if self._map_link and all(name != b"link" for name, _ in message["headers"]):
                    message["headers"].append((b"link", self._map_link.encode()))
            await send(message)

        await answer(scope, receive, with_common_headers)
        return status

    def _prefixed(self, header: Header) -> Header:
        """Return a header, a `Location` on this server with the prefix of our URLs."""
        name, value = header
        is_local = self._prefix and name == b"location" and value.startswith(b"/") and not value.startswith(b"//")
        return (name, self._prefix.encode() + value) if is_local else header


def without_prefix(scope: Scope, prefix: str) -> Scope:
    """Return a request with the prefix removed from its path; unchanged if the path is not below the prefix.

    A reverse proxy may pass the prefix on, or remove it: both work.
    """
    path: bytes = scope["raw_path"]
    rest = path.removeprefix(prefix.encode())
    if rest and not rest.startswith(b"/"):
        return scope
    return {**scope, "raw_path": rest or b"/", "path": scope["path"].removeprefix(unquote(prefix)) or "/"}


async def _sent(answer: Answer, method: str, send: Send) -> int:
    await deliver(answer, method, send)
    return answer.status


def _varying(send: Send) -> Send:
    """Say of an answer that it depends on the page that a request comes from, so that caches tell them apart."""

    async def varied(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (b"vary", b"referer")]}
        await send(message)

    return varied
