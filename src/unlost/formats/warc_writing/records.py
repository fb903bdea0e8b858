"""What all records of WARCs have that are written here."""

import json
import uuid
from functools import lru_cache

from unlost import dates
from unlost.formats.warc_writing import fields as warc_fields
from unlost.formats.warc_writing.fields import encode_value

WARC_VERSION = b"WARC/1.1\r\n"
RECORD_END = b"\r\n\r\n"
"""What stands behind the block of every record."""

HTTP_RESPONSE_TYPE = "application/http; msgtype=response"
HTTP_REQUEST_TYPE = "application/http; msgtype=request"
WARC_FIELDS_TYPE = "application/warc-fields"

TRUNCATION_REASONS = frozenset({"length", "time", "disconnect", "unspecified"})
"""Why a body may be cut, as WARC knows it."""

_CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"

# Record ids are made of what records hold, within this namespace: the same work makes the same file.
_RECORD_ID_NAMESPACE = uuid.UUID("5b3b5e0c-8a0c-5d0e-9d7a-6d1f7f0c2a11")


def make_record_id(*parts: str | None) -> str:
    """Return the WARC-Record-ID of the record that these parts tell from all others."""
    return f"<urn:uuid:{uuid.uuid5(_RECORD_ID_NAMESPACE, json.dumps(parts))}>"


format_record_date = lru_cache(16)(dates.to_iso)
"""Many records are kept in the same second, and copies of a page's parts were often stored in one."""


def format_record_header(fields: warc_fields.WarcFields) -> bytes:
    """Return the header of a record, up to its block. Fields without a value are left out."""
    return WARC_VERSION + warc_fields.format_fields(fields) + b"\r\n"


def format_warcinfo(file: str, software: str, moment: str) -> bytes:
    """Return the first record of a file: who wrote it, and in which format.

    moment: when it was begun, 14 digits.
    """
    about = [("software", encode_value(software)), ("format", "WARC File Format 1.1"), ("conformsTo", _CONFORMS_TO)]
    block = warc_fields.format_fields(about)
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", make_record_id("warcinfo", file, software, moment)),
        ("WARC-Date", format_record_date(moment)),
        ("WARC-Filename", file),
        ("Content-Type", WARC_FIELDS_TYPE),
        ("Content-Length", str(len(block))),
    ]
    return format_record_header(fields) + block + RECORD_END
