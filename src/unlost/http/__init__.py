"""HTTP client for archives: HTTP/1.1 connections, timeouts, redirects, retries, and the limits of each archive.

Modules in reading order:

- models: requests, responses, bodies, the `HttpClient` protocol, kinds of failure, and the User-Agent header
- url: URLs as sent, and the test for public IP addresses
- connection and pool: one HTTP/1.1 connection; name resolution, proxies, and reuse of connections
- content_encoding: gzip, deflate, Brotli and Zstandard
- exchange: one request and its streamed response
- rate_limit, limit_store, rate_limiter: rate limits and backoff as pure functions, their state, and waiting for them
- concurrency: the adaptive limit of requests in flight
- circuit_breaker and connectivity: skip failing archives, and distinguish them from an offline client
- policy: the retries, timeouts, waits and circuit breakers of each use
- client: `ArchiveHttpClient`, which combines all of these with retries, redirects and blocks

The package imports registry, uri, dates, clock and errors; never archives or anything that uses it.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
