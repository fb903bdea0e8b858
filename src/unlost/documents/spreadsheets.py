"""Text of spreadsheets of all formats, read with calamine."""

import datetime as dt
from io import BytesIO

import python_calamine

from unlost.documents.kind import list_ole_names
from unlost.documents.limits import DocumentLimits, TextCollector
from unlost.documents.office_binary import OleStreams, read_uint
from unlost.documents.office_xml import OfficeZip
from unlost.errors import DocumentError

# Record types of an xls file ([MS-XLS]): FilePass (the rest is encrypted), and EOF (the end of the workbook globals).
_FILE_PASS, _END = 0x2F, 0x0A


def read_sheets(body: bytes, collector: TextCollector, limits: DocumentLimits) -> None:
    """Collect the values of the cells, sheet by sheet and row by row."""
    try:
        with python_calamine.CalamineWorkbook.from_filelike(BytesIO(body)) as workbook:
            for name in workbook.sheet_names:
                for row in workbook.get_sheet_by_name(name).iter_rows():
                    collector.add(" ".join(filter(None, map(_format_cell, row))) + "\n")
    except python_calamine.CalamineError as error:
        _reject_encrypted(body, limits)  # calamine reports an encrypted file as an unknown format
        raise DocumentError(f"it is no whole spreadsheet: {str(error)[:100]}", "damaged") from error


def _reject_encrypted(body: bytes, limits: DocumentLimits) -> None:
    """Raise DocumentError if a spreadsheet is encrypted."""
    names = list_ole_names(body)
    for name in {"Workbook", "Book"} & names:
        stream = OleStreams(body).read(name)
        position = 0
        while position + 4 <= len(stream):
            kind, length = read_uint(stream, position, 2), read_uint(stream, position + 2, 2)
            if kind == _FILE_PASS:
                raise DocumentError("it can be read with a password only", "encrypted")
            if kind == _END:
                break
            position += 4 + length
    if not names or "EncryptedPackage" in names:
        OfficeZip(body, limits.unpacked).reject_encrypted()


def _format_cell(value: object) -> str:
    """Format a value as it is displayed, without a fraction of 0: 24.0 is 24."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return str(value)
