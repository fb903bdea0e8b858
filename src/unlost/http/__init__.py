"""HTTP client for archives: HTTP/1.1 connections, timeouts, redirects, retries, and the limits of each archive.

models: `HttpRequest`, `HttpResponse`, bodies in memory or in temporary files, the `HttpClient` protocol, kinds of
failure, the User-Agent header. url: URLs as
sent, public IP addresses. connection: one HTTP/1.1 connection. pool: name resolution, proxies, reuse of connections.
content_encoding: gzip, deflate, Brotli, Zstandard. exchange: one request
and its streamed response. client: `ArchiveHttpClient`, with retries, redirects and blocks.

rate_limit: rate limits, quotas and backoff as pure functions. limit_store: their state, in memory or on disk.
rate_limiter: waits for them. concurrency: the adaptive limit of requests in flight. circuit_breaker: skips failing
archives and hosts. policy: the numbers of breakers, retries, timeouts and waits for each use. connectivity: tells an
offline client from an archive that is down.

Imports registry, uri, dates, clock and errors; never archives or anything that uses it.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
