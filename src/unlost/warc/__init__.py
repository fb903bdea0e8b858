"""WARC, ARC and WACZ files: reading records and captures, and writing WARCs.

Modules in reading order:

- `records`: Gzip members, header fields, payloads and single records of the WARCs that unlost writes.
- `reader`: Captures and single records of WARC and ARC files.
- `wacz`: The same for WACZ files.
- `writer`: Numbered WARC segments that survive kills and full disks.

Imports the top level, `uri` and the Rust core. It must not import `index`, `archives` or anything above.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.warc.reader import open_warc_record as open_warc_record
    from unlost.warc.reader import read_warc_captures as read_warc_captures
    from unlost.warc.records import HTTP_RESPONSE_TYPE as HTTP_RESPONSE_TYPE
    from unlost.warc.records import MAX_HEADER_BYTES as MAX_HEADER_BYTES
    from unlost.warc.records import RECORD_END as RECORD_END
    from unlost.warc.records import compress_member as compress_member
    from unlost.warc.records import format_http_head as format_http_head
    from unlost.warc.records import format_record_header as format_record_header
    from unlost.warc.records import format_sha1 as format_sha1
    from unlost.warc.records import make_record_id as make_record_id
    from unlost.warc.records import parse_http_head as parse_http_head
    from unlost.warc.wacz import open_wacz_record as open_wacz_record
    from unlost.warc.wacz import read_wacz_captures as read_wacz_captures
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "reader": "open_warc_record read_warc_captures",
            "records": (
                "HTTP_RESPONSE_TYPE MAX_HEADER_BYTES RECORD_END compress_member format_http_head "
                "format_record_header format_sha1 make_record_id parse_http_head"
            ),
            "wacz": "open_wacz_record read_wacz_captures",
        },
    )
