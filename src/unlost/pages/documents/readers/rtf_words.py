"""The control words of RTF that matter for its text."""

import codecs

IGNORED_GROUPS = {
    # Tables and pictures; a star before a word leaves out most of the others.
    *("fonttbl", "colortbl", "stylesheet", "listtable", "filetbl", "info", "template", "private", "pict", "nextfile"),
    # What is seen otherwise: the code of a field, entries of an index, numbers of lists, comments, names of shapes.
    *("fldinst", "xe", "rxe", "txe", "tc", "listtext", "pntext", "annotation", "bkmkstart", "bkmkend", "sn", "sv"),
    # The same once more for programs of old; embedded files; the lines between text and notes.
    *("shprslt", "nonesttables", "objdata", "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn"),
}
"""Groups that hold no text of the document."""

HEADER_FOOTER_GROUPS = {"header", "headerf", "headerl", "headerr", "footer", "footerf", "footerl", "footerr"}
"""Headers and footers."""

READ_THOUGH_STARRED = {"footnote", "shpinst", "shptxt", "nesttableprops"}
"""Groups that programs may leave out if they do not know them, and that have text or lead to it."""

BREAKS = {"par", "line", "page", "column", "sect", "cell", "row", "tab", "nestcell", "nestrow", "lbr"}
"""What words end at."""

CHARACTERS = {
    "emdash": "—",
    "endash": "–",  # noqa: RUF001  that is what it is
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "•",
    "lquote": "‘",  # noqa: RUF001
    "rquote": "’",  # noqa: RUF001
    "ldblquote": "“",
    "rdblquote": "”",
}

CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gbk",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
"""What a font's bytes mean, where that is not what the file's do."""


def code_page_encoding(number: int) -> str:
    """Return the encoding of a code page; Western if nobody knows it."""
    name = "utf-8" if number == 65001 else "mac_roman" if number == 10000 else f"cp{number}"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"
