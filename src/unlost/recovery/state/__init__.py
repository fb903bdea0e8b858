"""The SQLite database of a recovery: resources, captures, listings and records.

Modules in reading order: `schema` opens and migrates the file; `captures` and `resources` wrap its tables; `queries`
reads finished and missing resources; `store` combines the tables for the process that writes them; `reader` reads the
file while another process may write it.

The package must not import `unlost.report`, `unlost.export` or the scheduler and fetcher of `unlost.recovery`.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.recovery.state.captures import CaptureOutcome as CaptureOutcome
    from unlost.recovery.state.captures import ListingRow as ListingRow
    from unlost.recovery.state.captures import ListingStatus as ListingStatus
    from unlost.recovery.state.queries import FinishedResource as FinishedResource
    from unlost.recovery.state.reader import StateReader as StateReader
    from unlost.recovery.state.resources import UNASSIGNED as UNASSIGNED
    from unlost.recovery.state.resources import NewResource as NewResource
    from unlost.recovery.state.resources import ResourceStatus as ResourceStatus
    from unlost.recovery.state.schema import REQUESTS_FACT as REQUESTS_FACT
    from unlost.recovery.state.schema import SCHEMA_VERSION as SCHEMA_VERSION
    from unlost.recovery.state.store import RecoveryState as RecoveryState
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "captures": "CaptureOutcome ListingRow ListingStatus",
            "queries": "FinishedResource",
            "reader": "StateReader",
            "resources": "NewResource ResourceStatus UNASSIGNED",
            "schema": "REQUESTS_FACT SCHEMA_VERSION",
            "store": "RecoveryState",
        },
    )
