"""The web service: Memento aggregator endpoints, the jobs API, and the server that runs them.

Modules in reading order:

- `responses`: responses and the headers that all of them have
- `app`: the ASGI application; serves the aggregator endpoints itself and passes other requests to Starlette
- `timemap_views`, `proxy`: TimeMaps, TimeGates and replay (RFC 7089, MemGator)
- `routes`, `openapi`, `monitoring`: the other endpoints, their description, metrics and the event stream
- `jobs_api`, `jobs_openapi`, `page_router`: recovery jobs for programs, and the HTML pages of `unlost.webui`
- `factory`, `jobs_factory`, `server`: build the service from its options and run it

Must not import `unlost.cli`. Modules for jobs are imported only where jobs are served, since SQLAlchemy slows down the
start.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.web.app import Application as Application
    from unlost.web.app import referring_page as referring_page
    from unlost.web.app import route_by_referer as route_by_referer
    from unlost.web.factory import ServiceContext as ServiceContext
    from unlost.web.factory import ServiceOptions as ServiceOptions
    from unlost.web.factory import build_service as build_service
    from unlost.web.jobs_api import JobsApi as JobsApi
    from unlost.web.monitoring import EventStream as EventStream
    from unlost.web.monitoring import Metrics as Metrics
    from unlost.web.monitoring import MetricsListener as MetricsListener
    from unlost.web.openapi import build_openapi as build_openapi
    from unlost.web.proxy import ReplayProxy as ReplayProxy
    from unlost.web.proxy import ReplaySource as ReplaySource
    from unlost.web.responses import Header as Header
    from unlost.web.responses import Message as Message
    from unlost.web.responses import error_response as error_response
    from unlost.web.server import ReloadableApplication as ReloadableApplication
    from unlost.web.server import listen as listen
    from unlost.web.timemap_views import ResponseCache as ResponseCache
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "app": "Application referring_page route_by_referer",
            "factory": "ServiceContext ServiceOptions build_service",
            "jobs_api": "JobsApi",
            "monitoring": "EventStream Metrics MetricsListener",
            "openapi": "build_openapi",
            "proxy": "ReplayProxy ReplaySource",
            "responses": "Header Message error_response",
            "server": "ReloadableApplication listen",
            "timemap_views": "ResponseCache",
        },
    )
