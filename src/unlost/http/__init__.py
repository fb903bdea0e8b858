"""HTTP client for archives: HTTP/1.1 connections, timeouts, redirects, retries, and the limits of each archive.

models: `HttpRequest`, `HttpResponse`, bodies in memory or in temporary files, the `HttpClient` protocol, kinds of
failure, the User-Agent header. url: URLs as
sent, public IP addresses. connection: one HTTP/1.1 connection. pool: name resolution, proxies, reuse of connections.
content_encoding: gzip, deflate, Brotli, Zstandard. exchange: one request
and its streamed response. client: `ArchiveHttpClient`, with retries, redirects and blocks.

rate_limit: rate limits, quotas and backoff as pure functions. limit_store: their state, in memory or on disk.
rate_limiter: waits for them. concurrency: the adaptive limit of requests in flight. circuit_breaker: skips failing
archives. connectivity: tells an offline client from an archive that is down.

Imports registry, uri, dates, clock and errors; never archives or anything that uses it.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.http.circuit_breaker import FAILURE_OUTCOMES as FAILURE_OUTCOMES
    from unlost.http.circuit_breaker import LISTING_INCOMPLETE as LISTING_INCOMPLETE
    from unlost.http.circuit_breaker import PAGE_FAILURE_OUTCOMES as PAGE_FAILURE_OUTCOMES
    from unlost.http.circuit_breaker import BreakerConfig as BreakerConfig
    from unlost.http.circuit_breaker import BreakerRegistry as BreakerRegistry
    from unlost.http.circuit_breaker import BreakerState as BreakerState
    from unlost.http.circuit_breaker import CircuitBreaker as CircuitBreaker
    from unlost.http.circuit_breaker import CircuitBreakers as CircuitBreakers
    from unlost.http.circuit_breaker import Suspension as Suspension
    from unlost.http.client import ArchiveHttpClient as ArchiveHttpClient
    from unlost.http.concurrency import ConcurrencyLimiter as ConcurrencyLimiter
    from unlost.http.concurrency import ConcurrencyOptions as ConcurrencyOptions
    from unlost.http.connection import HttpConnection as HttpConnection
    from unlost.http.connectivity import Connectivity as Connectivity
    from unlost.http.content_encoding import MAX_CODINGS as MAX_CODINGS
    from unlost.http.content_encoding import ContentDecoder as ContentDecoder
    from unlost.http.content_encoding import UndecodableError as UndecodableError
    from unlost.http.content_encoding import decode_chunks as decode_chunks
    from unlost.http.content_encoding import parse_content_encoding as parse_content_encoding
    from unlost.http.exchange import CONNECTION_ERRORS as CONNECTION_ERRORS
    from unlost.http.exchange import Timeouts as Timeouts
    from unlost.http.limit_store import FileLimitStore as FileLimitStore
    from unlost.http.limit_store import LimitStore as LimitStore
    from unlost.http.limit_store import MemoryLimitStore as MemoryLimitStore
    from unlost.http.models import PRODUCT_TOKEN as PRODUCT_TOKEN
    from unlost.http.models import BodyTooLargeError as BodyTooLargeError
    from unlost.http.models import HttpClient as HttpClient
    from unlost.http.models import HttpRequest as HttpRequest
    from unlost.http.models import HttpResponse as HttpResponse
    from unlost.http.models import new_body as new_body
    from unlost.http.pool import AddressInfo as AddressInfo
    from unlost.http.pool import ConnectionPool as ConnectionPool
    from unlost.http.pool import ConnectTimeoutError as ConnectTimeoutError
    from unlost.http.pool import SystemResolver as SystemResolver
    from unlost.http.pool import literal_address_info as literal_address_info
    from unlost.http.rate_limit import DAY as DAY
    from unlost.http.rate_limit import DEFAULT_SHARE as DEFAULT_SHARE
    from unlost.http.rate_limit import HOUR as HOUR
    from unlost.http.rate_limit import SHARE_WITHOUT_CONTACT as SHARE_WITHOUT_CONTACT
    from unlost.http.rate_limit import RateLimitState as RateLimitState
    from unlost.http.rate_limit import admit as admit
    from unlost.http.rate_limit import parse_retry_after as parse_retry_after
    from unlost.http.rate_limit import record_refusal as record_refusal
    from unlost.http.rate_limit import record_response as record_response
    from unlost.http.rate_limit import record_throttling as record_throttling
    from unlost.http.rate_limiter import RateLimiter as RateLimiter
    from unlost.http.rate_limiter import WaitBudget as WaitBudget
    from unlost.http.url import HostPort as HostPort
    from unlost.http.url import is_public_ip as is_public_ip
    from unlost.http.url import may_be_public_host as may_be_public_host
    from unlost.http.url import parse_url as parse_url
    from unlost.http.url import registered_hosts as registered_hosts
    from unlost.http.url import resolve_redirect as resolve_redirect
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "circuit_breaker": (
                "BreakerConfig BreakerRegistry BreakerState CircuitBreaker CircuitBreakers FAILURE_OUTCOMES "
                "LISTING_INCOMPLETE PAGE_FAILURE_OUTCOMES Suspension"
            ),
            "client": "ArchiveHttpClient",
            "concurrency": "ConcurrencyLimiter ConcurrencyOptions",
            "connection": "HttpConnection",
            "connectivity": "Connectivity",
            "content_encoding": "ContentDecoder MAX_CODINGS UndecodableError decode_chunks parse_content_encoding",
            "exchange": "CONNECTION_ERRORS Timeouts",
            "limit_store": "FileLimitStore LimitStore MemoryLimitStore",
            "models": "BodyTooLargeError HttpClient HttpRequest HttpResponse PRODUCT_TOKEN new_body",
            "pool": "AddressInfo ConnectTimeoutError ConnectionPool SystemResolver literal_address_info",
            "rate_limit": (
                "DAY DEFAULT_SHARE HOUR RateLimitState SHARE_WITHOUT_CONTACT admit parse_retry_after "
                "record_refusal record_response record_throttling"
            ),
            "rate_limiter": "RateLimiter WaitBudget",
            "url": "HostPort is_public_ip may_be_public_host parse_url registered_hosts resolve_redirect",
        },
    )
