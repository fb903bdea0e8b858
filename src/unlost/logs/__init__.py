"""Logs of requests, read as streams in bounded memory. Invalid lines are skipped and counted.

Modules:

- `access`: Access logs of web servers and archives.
- `upstream`: Logs of the responses of archives to an aggregator: of unlost, read and written, and of MemGator.

Imports only the top level.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
