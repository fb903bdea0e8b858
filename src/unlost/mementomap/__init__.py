r"""MementoMaps, filters and URI-Key profiles: what an archive holds, built from its index, and look-ups in them.

Modules in reading order:

- `readers`: Detection and counting of inputs; options and reports common to all builders.
- `map_file`: The MementoMap file format.
- `builder`, `compact`, `budget`, `merge`, `exclude`, `check`: Create, compact, merge, extend and validate maps.
- `map`: Look-ups in a map.
- `filter`, `filter_builder`: Static approximate membership filters.
- `lookup`: Combined look-ups in the map and the filters of one or more archives.
- `profile`, `profile_builder`: URI-Key profiles.
- `query_logs`: Logs of requested pages, for `budget` and `exclude`.

Imports the top level, `uri`, `warc`, `index`, `logs` and the Rust core. It must not import `archives`, `aggregate` or
anything else that sends requests.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from unlost.mementomap import Map
>>> with TemporaryDirectory() as folder:
...     file = Path(folder, "a.ukvs")
...     _ = file.write_text("com,* 10000+\norg,arxiv)/* 2500~/900\norg,arxiv)/pdf/* 0\n")
...     Map.open(file).lookup("https://arxiv.org/pdf/1234")
LookupResult(key='org,arxiv)/pdf/1234', held=False, matched='org,arxiv)/pdf/*', frequency='0')
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
