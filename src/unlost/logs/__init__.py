"""Logs of requests, read as streams in bounded memory; invalid lines are counted.

`access` reads access logs of web servers and archives, `upstream` reads and writes logs of upstream responses of
aggregators. Imports only the top level.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
