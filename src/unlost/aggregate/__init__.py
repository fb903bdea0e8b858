"""The Memento aggregator: routes a look-up to archives, queries them concurrently, merges and caches the results.

Modules in reading order:

- `models`: routing options, cache control, archive reports and the result
- `request`, `urls`: requests to the HTTP API, and the service's own URLs
- `holdings_store`, `hit_rates`, `router`: MementoMaps and filters, learned hit rates, and the choice of archives
- `upstream`, `aggregator`: one request to one archive; all requests of a look-up, and the entry point
- `cache`, `disk_cache`: results in memory and in an SQLite file
- `listeners`, `archive_status`: learning, logging and the status of each archive
- `factory`: builds an aggregator from its configuration
- `serializers`: TimeMaps, memento descriptions and summaries

Must not import the web service, the command line interface or the recovery of sites.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
