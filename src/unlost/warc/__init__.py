"""WARC, ARC and WACZ files: bytes to records and captures, and back.

Reading order: `records` (gzip members, header fields, payloads, single records written here), `reader` (captures and
single records of WARC and ARC), `wacz` (the same of WACZ), `writer` (numbered WARC segments that survive kills and
full disks).

Imports the top level, `uri` and the Rust core; nothing of `index`, `archives` or above.
"""
