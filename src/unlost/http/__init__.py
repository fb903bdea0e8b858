"""HTTP client for archives: HTTP/1.1 connections, timeouts, redirects, retries, and the limits of each archive.

Reading order: models (HttpRequest, HttpResponse, HttpClient), url, resolver, connection, pool, exchange, client
(ArchiveHttpClient); rate_limit (rules), limit_store (shared state on disk), rate_limiter (permits), concurrency
(adaptive limit of requests in flight), circuit_breaker, connectivity (offline or not), user_agent, body.

Imports registry, uri, dates, clock and errors; never archives or anything that uses it.
"""
