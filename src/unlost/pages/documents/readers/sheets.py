"""The text of spreadsheets of all formats, by calamine."""

import datetime as dt
from io import BytesIO

import python_calamine

from unlost.errors import DocumentError
from unlost.pages.documents.limits import Limits
from unlost.pages.documents.ole_names import ole_names
from unlost.pages.documents.readers.gathered import Gathered


def read_sheets(body: bytes, gathered: Gathered, _limits: Limits) -> None:
    """Gather what is in the cells, sheet by sheet and row by row: values, not formulas."""
    if "EncryptedPackage" in ole_names(body):
        raise DocumentError("it can be read with a password only", "encrypted")
    try:
        with python_calamine.CalamineWorkbook.from_filelike(BytesIO(body)) as workbook:
            for name in workbook.sheet_names:
                for row in workbook.get_sheet_by_name(name).iter_rows():
                    gathered.add(" ".join(filter(None, map(_shown, row))) + "\n")
    except python_calamine.PasswordError as error:
        raise DocumentError("it can be read with a password only", "encrypted") from error
    except python_calamine.CalamineError as error:
        raise DocumentError(f"it is no whole spreadsheet: {str(error)[:100]}", "damaged") from error


def _shown(value: object) -> str:
    """Return a value as people would see it; numbers without a part that says nothing, so that 24.0 is 24."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return str(value)
