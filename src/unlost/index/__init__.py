"""Index files: CDX, CDXJ, ZipNum and UKVS, read and written as streams of rows.

Reading order: `cdx` (rows, CDX and CDXJ), `zipnum` (sorted compressed blocks), `external_sort`, `detection` (what a
file is), `warc_index` (rows of archive files), `reader` (rows and captures of an index of any kind), `ukvs` (the file
format of MementoMaps).

Imports the top level, `uri` and `warc`; nothing of `archives` or above.
"""
