"""The text of spreadsheets of all formats, by calamine."""

import datetime as dt
from io import BytesIO

import python_calamine

from unlost.errors import DocumentError
from unlost.pages.documents.limits import Limits
from unlost.pages.documents.ole_names import ole_names
from unlost.pages.documents.readers.gathered import Gathered
from unlost.pages.documents.readers.ole import OleStreams, number
from unlost.pages.documents.readers.zip_parts import ZipParts

# The records of an xls that say that what follows is encrypted, and that the part for all sheets is over.
_FILE_PASS, _END = 0x2F, 0x0A


def read_sheets(body: bytes, gathered: Gathered, limits: Limits) -> None:
    """Gather what is in the cells, sheet by sheet and row by row: values, not formulas."""
    try:
        with python_calamine.CalamineWorkbook.from_filelike(BytesIO(body)) as workbook:
            for name in workbook.sheet_names:
                for row in workbook.get_sheet_by_name(name).iter_rows():
                    gathered.add(" ".join(filter(None, map(_shown, row))) + "\n")
    except python_calamine.CalamineError as error:
        _refuse_encrypted(body, limits)  # which calamine does not tell: it only says that it knows no such format
        raise DocumentError(f"it is no whole spreadsheet: {str(error)[:100]}", "damaged") from error


def _refuse_encrypted(body: bytes, limits: Limits) -> None:
    """Raise DocumentError if a spreadsheet has a password."""
    names = ole_names(body)
    for name in {"Workbook", "Book"} & names:
        stream = OleStreams(body).read(name)
        at = 0
        while at + 4 <= len(stream):
            kind, length = number(stream, at, 2), number(stream, at + 2, 2)
            if kind == _FILE_PASS:
                raise DocumentError("it can be read with a password only", "encrypted")
            if kind == _END:
                break
            at += 4 + length
    if not names or "EncryptedPackage" in names:
        ZipParts(body, limits.unpacked).refuse_encrypted()


def _shown(value: object) -> str:
    """Return a value as people would see it; numbers without a part that says nothing, so that 24.0 is 24."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return str(value)
