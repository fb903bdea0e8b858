"""The web service: Memento aggregator endpoints, the jobs API, and the server that runs them.

Modules in reading order:

- `responses`: responses and the headers that all of them have
- `app`: the ASGI application; serves the aggregator endpoints itself and passes other requests to Starlette
- `timemap_views`, `proxy`: TimeMaps, TimeGates and replay (RFC 7089, MemGator)
- `routes`, `openapi`, `metrics`, `monitoring`: the other endpoints, their description, metrics and the event stream
- `jobs_api`, `jobs_openapi`, `page_router`: recovery jobs for programs, and the HTML pages of `unlost.webui`
- `factory`, `jobs_factory`, `server`: build the service from its options and run it

Must not import `unlost.cli`. Modules for jobs are imported only where jobs are served, since SQLAlchemy slows down the
start.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
