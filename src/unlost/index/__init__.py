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

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.index.cdx import IndexRow as IndexRow
    from unlost.index.detection import SAMPLED_LINES as SAMPLED_LINES
    from unlost.index.detection import classify_line as classify_line
    from unlost.index.detection import detect_line_kind as detect_line_kind
    from unlost.index.detection import detect_query_format as detect_query_format
    from unlost.index.detection import reject_unsupported_formats as reject_unsupported_formats
    from unlost.index.external_sort import sort_lines as sort_lines
    from unlost.index.reader import find_index_captures as find_index_captures
    from unlost.index.reader import read_index_captures as read_index_captures
    from unlost.index.reader import read_index_rows as read_index_rows
    from unlost.index.ukvs import UKVS_PROBLEM_KINDS as UKVS_PROBLEM_KINDS
    from unlost.index.ukvs import Frequency as Frequency
    from unlost.index.ukvs import UkvsHeader as UkvsHeader
    from unlost.index.ukvs import UkvsReader as UkvsReader
    from unlost.index.ukvs import UkvsRow as UkvsRow
    from unlost.index.ukvs import parse_lenient_json as parse_lenient_json
    from unlost.index.ukvs import write_ukvs as write_ukvs
    from unlost.index.warc_index import is_archive_file as is_archive_file
    from unlost.index.warc_index import read_archive_captures as read_archive_captures
    from unlost.index.zipnum import ZipNumBlock as ZipNumBlock
    from unlost.index.zipnum import ZipNumIndex as ZipNumIndex
    from unlost.index.zipnum import write_zipnum as write_zipnum
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cdx": "IndexRow",
            "detection": (
                "SAMPLED_LINES classify_line detect_line_kind detect_query_format reject_unsupported_formats"
            ),
            "external_sort": "sort_lines",
            "reader": "find_index_captures read_index_captures read_index_rows",
            "ukvs": "Frequency UKVS_PROBLEM_KINDS UkvsHeader UkvsReader UkvsRow parse_lenient_json write_ukvs",
            "warc_index": "is_archive_file read_archive_captures",
            "zipnum": "ZipNumBlock ZipNumIndex write_zipnum",
        },
    )
