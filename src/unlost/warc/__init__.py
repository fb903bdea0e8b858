"""WARC, ARC and WACZ files: reading records and captures, and writing WARCs.

Modules in reading order:

- `records`: Gzip members, header fields, payloads and single records of the WARCs that unlost writes.
- `reader`: Captures and single records of WARC and ARC files.
- `wacz`: The same for WACZ files.
- `writer`: Numbered WARC segments that survive kills and full disks.

Imports the top level, `uri` and the Rust core. It must not import `index`, `archives` or anything above.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
