"""Logs of requests, read as streams in bounded memory; invalid lines are counted.

`access` reads access logs of web servers and archives, `upstream` reads and writes logs of upstream responses of
aggregators. Imports only the top level.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.logs.access import ACCESS_LOG_PROBLEM_KINDS as ACCESS_LOG_PROBLEM_KINDS
    from unlost.logs.access import AccessLogEntry as AccessLogEntry
    from unlost.logs.access import read_access_log as read_access_log
    from unlost.logs.upstream import UPSTREAM_LOG_PROBLEM_KINDS as UPSTREAM_LOG_PROBLEM_KINDS
    from unlost.logs.upstream import RoutingReason as RoutingReason
    from unlost.logs.upstream import UpstreamEndpoint as UpstreamEndpoint
    from unlost.logs.upstream import UpstreamLogEntry as UpstreamLogEntry
    from unlost.logs.upstream import UpstreamOutcome as UpstreamOutcome
    from unlost.logs.upstream import format_log_entry as format_log_entry
    from unlost.logs.upstream import read_upstream_log as read_upstream_log
    from unlost.logs.upstream import write_upstream_log as write_upstream_log
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "access": "ACCESS_LOG_PROBLEM_KINDS AccessLogEntry read_access_log",
            "upstream": (
                "RoutingReason UPSTREAM_LOG_PROBLEM_KINDS UpstreamEndpoint UpstreamLogEntry UpstreamOutcome "
                "format_log_entry read_upstream_log write_upstream_log"
            ),
        },
    )
