"""Index files: CDX, CDXJ, ZipNum and UKVS, read and written as streams of rows.

Modules in reading order:

- `cdx`: Rows, and the CDX and CDXJ formats.
- `zipnum`: Sorted indexes in compressed blocks.
- `external_sort`: Sorting of lines that do not fit into memory.
- `detection`: What a file contains.
- `warc_index`: Rows of archive files.
- `reader`: Rows and captures of an index of any kind.
- `ukvs`: The file format of MementoMaps.

Imports the top level, `uri` and `warc`. It must not import `archives` or anything above.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
