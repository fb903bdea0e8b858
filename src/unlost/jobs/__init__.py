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

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
