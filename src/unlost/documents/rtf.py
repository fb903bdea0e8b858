"""Text of RTF files, and the control words that matter for it."""

import codecs
import re
from dataclasses import dataclass, replace

from unlost.documents.limits import DocumentLimits, TextCollector, TextSection

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


_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|([^\\{}\r\n\0]+)|.", re.DOTALL
)
_MAX_GROUP_DEPTH = 10_000  # groups in groups: what is deeper is taken as if it were not


@dataclass(frozen=True, slots=True)
class _GroupState:
    """What a group inherits from the one around it, and gives back at its end.

    is_read: whether its text counts. where: where it stands. fallback: how many characters stand
    behind each one of Unicode for programs that do not know it. in_fonts: whether this is the table of fonts.
    """

    is_read: bool = True
    where: TextSection = TextSection.TEXT
    is_deleted: bool = False
    fallback: int = 1
    encoding: str | None = None
    in_fonts: bool = False


def read_rtf(body: bytes, gathered: TextCollector, _limits: DocumentLimits) -> None:
    """Gather the text, then notes, headers and footers. Comments, field codes and what was deleted are left out."""
    _RtfParser(body, gathered).parse()


class _RtfParser:
    """One file being read."""

    def __init__(self, body: bytes, gathered: TextCollector) -> None:
        self._body = body
        self._gathered = gathered
        self._state = _GroupState()
        self._groups: list[_GroupState] = []
        self._too_deep = 0
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._encoding = "cp1252"
        self._pending = bytearray()  # bytes that may be parts of one character
        self._half = ""  # the first half of a character of two
        self._skip = 0
        self._is_starred = False

    def parse(self) -> None:
        """Gather the text."""
        place = 0
        while (token := _TOKEN.match(self._body, place)) is not None:
            place = token.end()
            word, argument, code, symbol, brace, plain = token.groups()
            if code is not None:
                self._take(bytes([int(code, 16)]))
            elif plain is not None:
                self._take(plain)
            elif word is not None:
                number = int(argument) if argument else None
                place = self._word(word.decode(), number, place)
            elif symbol is not None:
                self._symbol(symbol)
            elif brace is not None:
                self._brace(brace)
        self._flush()

    def _take(self, content: bytes) -> None:
        """Take bytes of text, but those that only stand for a character of Unicode before them."""
        skipped = min(self._skip, len(content))
        self._skip -= skipped
        self._is_starred = False
        if self._state.is_read and not self._state.is_deleted:
            self._pending += content[skipped:]

    def _flush(self) -> None:
        if self._pending:
            text = self._pending.decode(self._state.encoding or self._encoding, "replace")
            self._pending.clear()
            self._add(text)

    def _add(self, text: str) -> None:
        if self._state.is_read and not self._state.is_deleted:
            self._gathered.add(text, self._state.where)

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._skip = 0
        self._is_starred = False
        if brace == b"{":
            if len(self._groups) < _MAX_GROUP_DEPTH:
                self._groups.append(self._state)
            else:
                self._too_deep += 1
        elif self._too_deep:
            self._too_deep -= 1
        elif self._groups:
            self._state = self._groups.pop()

    def _symbol(self, symbol: bytes) -> None:
        self._flush()
        self._skip = 0
        if symbol == b"*":
            self._is_starred = True
        elif symbol in b"\\{}":
            self._take(symbol)
        elif symbol == b"_":
            self._add("-")
        elif symbol in b"~\r\n\t":
            self._add(" ")

    def _word(self, word: str, number: int | None, place: int) -> int:
        """Do what a control word says and return where to go on."""
        self._flush()
        starred, self._is_starred = self._is_starred, False
        if word == "bin":
            return place + max(0, number or 0)
        if word == "u" and number is not None:
            self._unicode(number & 0xFFFF)
            return place
        self._skip = 0
        if word in IGNORED_GROUPS or (starred and word not in READ_THOUGH_STARRED):
            self._state = replace(self._state, is_read=False, in_fonts=word == "fonttbl")
        elif word in HEADER_FOOTER_GROUPS or word == "footnote":
            self._state = replace(
                self._state, where=TextSection.MARGINS if word in HEADER_FOOTER_GROUPS else TextSection.NOTES
            )
            self._add("\n")
        elif word in BREAKS:
            self._add("\n")
        elif word in CHARACTERS:
            self._add(CHARACTERS[word])
        else:
            self._setting(word, number)
        return place

    def _setting(self, word: str, number: int | None) -> None:
        """Do what a control word says about how text is written."""
        if word == "uc":
            self._state = replace(self._state, fallback=max(0, number or 0))
        elif word == "deleted":
            self._state = replace(self._state, is_deleted=number != 0)
        elif word == "plain":
            self._state = replace(self._state, is_deleted=False)
        elif word == "f" and self._state.in_fonts:
            self._font = number or 0
        elif word == "f":
            self._state = replace(self._state, encoding=self._fonts.get(number or 0))
        elif word == "fcharset" and self._state.in_fonts and number in CHARSETS:
            self._fonts[self._font] = CHARSETS[number]
        elif word == "ansicpg" and number is not None:
            self._encoding = code_page_encoding(number)
        elif word in {"mac", "pc", "pca"}:
            self._encoding = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]

    def _unicode(self, unit: int) -> None:
        """Take a unit of UTF-16, of which some characters need two."""
        self._skip = self._state.fallback
        if 0xD800 <= unit < 0xDC00:
            self._half = chr(unit)
            return
        text, self._half = self._half + chr(unit), ""
        self._add(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
