"""The queue of recovery jobs: orders, job states, the database, workers and retention.

The web service writes orders into a database (SQLite or PostgreSQL), and workers on one or more machines claim and
process them under leases.

Modules in reading order:

- `models`, `states`: orders and jobs, and the pure functions that change a job's state
- `tables`, `database`, `migrations`: SQL tables, transactions, and schema upgrades
- `store`: the queue, leases, workers and event log; `limits`: what may be ordered
- `worker`, `folders`, `rate_limit_store`: processing a job and packing its result
- `outbox`, `auth`, `client_network`: emails to send, authentication, client networks
- `service`, `watcher`, `tasks`, `serializers`, `statistics`: what the web application uses

Must not import `unlost.web`, `unlost.webui` or `unlost.cli`. Imports SQLAlchemy, so other packages must import it
lazily.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.jobs.auth import AdminStore as AdminStore
    from unlost.jobs.auth import AdminTokens as AdminTokens
    from unlost.jobs.auth import LinkSigner as LinkSigner
    from unlost.jobs.auth import hash_password as hash_password
    from unlost.jobs.auth import load_secret as load_secret
    from unlost.jobs.auth import verify_password as verify_password
    from unlost.jobs.client_network import ClientIdentifier as ClientIdentifier
    from unlost.jobs.client_network import OrderOrigin as OrderOrigin
    from unlost.jobs.database import Database as Database
    from unlost.jobs.database import file_url as file_url
    from unlost.jobs.folders import CHECKPOINT_FILE as CHECKPOINT_FILE
    from unlost.jobs.folders import LOW_SPACE as LOW_SPACE
    from unlost.jobs.folders import QUOTA_REACHED as QUOTA_REACHED
    from unlost.jobs.folders import DiskSpace as DiskSpace
    from unlost.jobs.folders import DiskSpaceLimits as DiskSpaceLimits
    from unlost.jobs.folders import JobFolders as JobFolders
    from unlost.jobs.folders import write_checkpoint as write_checkpoint
    from unlost.jobs.folders import write_packages as write_packages
    from unlost.jobs.limits import LookupRateLimit as LookupRateLimit
    from unlost.jobs.limits import OrderLimits as OrderLimits
    from unlost.jobs.limits import OrderRules as OrderRules
    from unlost.jobs.limits import is_host_below as is_host_below
    from unlost.jobs.limits import is_private_host as is_private_host
    from unlost.jobs.limits import parse_domain as parse_domain
    from unlost.jobs.models import Job as Job
    from unlost.jobs.models import JobPackage as JobPackage
    from unlost.jobs.models import JobProgress as JobProgress
    from unlost.jobs.models import JobState as JobState
    from unlost.jobs.models import Order as Order
    from unlost.jobs.models import order_from_json as order_from_json
    from unlost.jobs.models import parse_order as parse_order
    from unlost.jobs.outbox import MailOutbox as MailOutbox
    from unlost.jobs.outbox import PendingMail as PendingMail
    from unlost.jobs.rate_limit_store import DatabaseLimitStore as DatabaseLimitStore
    from unlost.jobs.serializers import HISTORY_MEDIA_TYPES as HISTORY_MEDIA_TYPES
    from unlost.jobs.serializers import history_row as history_row
    from unlost.jobs.serializers import write_history as write_history
    from unlost.jobs.service import ClockGuard as ClockGuard
    from unlost.jobs.service import JobService as JobService
    from unlost.jobs.states import MailKind as MailKind
    from unlost.jobs.states import RetentionPolicy as RetentionPolicy
    from unlost.jobs.statistics import HISTOGRAM_BINS as HISTOGRAM_BINS
    from unlost.jobs.statistics import IP_ADDRESS as IP_ADDRESS
    from unlost.jobs.statistics import MAX_TLDS as MAX_TLDS
    from unlost.jobs.statistics import OTHER_TLDS as OTHER_TLDS
    from unlost.jobs.statistics import RunningSummary as RunningSummary
    from unlost.jobs.statistics import compute_statistics as compute_statistics
    from unlost.jobs.statistics import statistics_domain as statistics_domain
    from unlost.jobs.store import JobStore as JobStore
    from unlost.jobs.store import list_events as list_events
    from unlost.jobs.store import seconds_worked as seconds_worked
    from unlost.jobs.tables import EVENTS as EVENTS
    from unlost.jobs.tables import JOBS as JOBS
    from unlost.jobs.tables import MAILS as MAILS
    from unlost.jobs.tables import METADATA as METADATA
    from unlost.jobs.tables import TALLIES as TALLIES
    from unlost.jobs.tables import hash_customer as hash_customer
    from unlost.jobs.watcher import JobSnapshot as JobSnapshot
    from unlost.jobs.watcher import JobWatcher as JobWatcher
    from unlost.jobs.worker import JobQuota as JobQuota
    from unlost.jobs.worker import JobRunner as JobRunner
    from unlost.jobs.worker import LeaseKeeper as LeaseKeeper
    from unlost.jobs.worker import WorkerContext as WorkerContext
    from unlost.jobs.worker import summarize_open_issues as summarize_open_issues
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "auth": "AdminStore AdminTokens LinkSigner hash_password load_secret verify_password",
            "client_network": "ClientIdentifier OrderOrigin",
            "database": "Database file_url",
            "folders": (
                "CHECKPOINT_FILE DiskSpace DiskSpaceLimits JobFolders LOW_SPACE QUOTA_REACHED write_checkpoint "
                "write_packages"
            ),
            "limits": "LookupRateLimit OrderLimits OrderRules is_host_below is_private_host parse_domain",
            "models": "Job JobPackage JobProgress JobState Order order_from_json parse_order",
            "outbox": "MailOutbox PendingMail",
            "rate_limit_store": "DatabaseLimitStore",
            "serializers": "HISTORY_MEDIA_TYPES history_row write_history",
            "service": "ClockGuard JobService",
            "states": "MailKind RetentionPolicy",
            "statistics": (
                "HISTOGRAM_BINS IP_ADDRESS MAX_TLDS OTHER_TLDS RunningSummary compute_statistics statistics_domain"
            ),
            "store": "JobStore list_events seconds_worked",
            "tables": "EVENTS JOBS MAILS METADATA TALLIES hash_customer",
            "watcher": "JobSnapshot JobWatcher",
            "worker": "JobQuota JobRunner LeaseKeeper WorkerContext summarize_open_issues",
        },
    )
