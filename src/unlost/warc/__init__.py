"""WARC, ARC and WACZ files: reading captures and records, and writing WARCs.

The Rust core reads foreign files of any size and condition. WARCs are written here, and read back strictly.

Modules in reading order:

- `records`: Gzip members, header fields, payloads and single records of the WARCs that unlost writes.
- `reader`: Captures and single records of WARC and ARC files.
- `wacz`: Captures and single records of WACZ files.
- `writer`: Numbered WARC segments that survive kills and full disks.

Imports the top level, `uri` and the Rust core. It must not import `index`, `archives` or anything above.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
