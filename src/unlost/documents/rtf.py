"""Text of RTF files, and the control words that affect it."""

import codecs
import re
from dataclasses import dataclass, replace

from unlost.documents.limits import DocumentLimits, TextCollector, TextSection

IGNORED_GROUPS = {
    # Tables and images. Most other destinations without text are marked as ignorable, with `\*`.
    *("fonttbl", "colortbl", "stylesheet", "listtable", "filetbl", "info", "template", "private", "pict", "nextfile"),
    # Field codes, index entries, list numbers, comments, bookmarks, shape properties.
    *("fldinst", "xe", "rxe", "txe", "tc", "listtext", "pntext", "annotation", "bkmkstart", "bkmkend", "sn", "sv"),
    # Duplicates for older programs, embedded objects, separators of notes.
    *("shprslt", "nonesttables", "objdata", "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn"),
}
"""Destinations without text of the document."""
HEADER_FOOTER_GROUPS = {"header", "headerf", "headerl", "headerr", "footer", "footerf", "footerl", "footerr"}
"""Destinations of headers and footers."""
READ_THOUGH_STARRED = {"footnote", "shpinst", "shptxt", "nesttableprops"}
"""Destinations that contain text although they are marked as ignorable."""
BREAKS = {"par", "line", "page", "column", "sect", "cell", "row", "tab", "nestcell", "nestrow", "lbr"}
"""Control words that end a word."""
CHARACTERS = {
    "emdash": "—",
    "endash": "–",  # noqa: RUF001  the en dash is meant
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
"""Encodings of fonts by `fcharset` number, where they differ from that of the file."""

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|([^\\{}\r\n\0]+)|.", re.DOTALL
)
_MAX_GROUP_DEPTH = 10_000  # deeper groups share the state of their parent, which bounds memory


def code_page_encoding(number: int) -> str:
    """Return the encoding of a Windows code page; cp1252 if it is unknown."""
    name = "utf-8" if number == 65001 else "mac_roman" if number == 10000 else f"cp{number}"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


@dataclass(frozen=True, slots=True)
class _GroupState:
    """The state that a group inherits from its parent and restores at its end.

    Attributes:
        is_read: Whether its text counts.
        section: Section of its text.
        is_deleted: Whether its text is deleted.
        fallback: Number of fallback characters after each Unicode character (control word `uc`).
        encoding: Encoding of its font; None for that of the file.
        in_fonts: Whether it is the font table.
    """

    is_read: bool = True
    section: TextSection = TextSection.TEXT
    is_deleted: bool = False
    fallback: int = 1
    encoding: str | None = None
    in_fonts: bool = False


def read_rtf(body: bytes, collector: TextCollector, _limits: DocumentLimits) -> None:
    """Collect the text, then notes, headers and footers. Comments, field codes and deleted text are omitted."""
    _RtfParser(body, collector).parse()


class _RtfParser:
    """Parses one file."""

    def __init__(self, body: bytes, collector: TextCollector) -> None:
        self._body = body
        self._collector = collector
        self._state = _GroupState()
        self._groups: list[_GroupState] = []
        self._excess_depth = 0
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._encoding = "cp1252"
        self._pending = bytearray()  # text to decode; may end within a multi-byte character
        self._high_surrogate = ""
        self._skip = 0  # number of fallback characters to skip
        self._is_starred = False

    def parse(self) -> None:
        """Collect the text."""
        position = 0
        while (token := _TOKEN.match(self._body, position)) is not None:
            position = token.end()
            word, argument, code, symbol, brace, plain = token.groups()
            if code is not None:
                self._take_text(bytes([int(code, 16)]))
            elif plain is not None:
                self._take_text(plain)
            elif word is not None:
                number = int(argument) if argument else None
                position = self._handle_word(word.decode(), number, position)
            elif symbol is not None:
                self._handle_symbol(symbol)
            elif brace is not None:
                self._handle_brace(brace)
        self._flush()

    def _take_text(self, content: bytes) -> None:
        """Add bytes of text, except the fallback of a Unicode character."""
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
            self._collector.add(text, self._state.section)

    def _handle_brace(self, brace: bytes) -> None:
        self._flush()
        self._skip = 0
        self._is_starred = False
        if brace == b"{":
            if len(self._groups) < _MAX_GROUP_DEPTH:
                self._groups.append(self._state)
            else:
                self._excess_depth += 1
        elif self._excess_depth:
            self._excess_depth -= 1
        elif self._groups:
            self._state = self._groups.pop()

    def _handle_symbol(self, symbol: bytes) -> None:
        self._flush()
        self._skip = 0
        if symbol == b"*":
            self._is_starred = True
        elif symbol in b"\\{}":
            self._take_text(symbol)
        elif symbol == b"_":
            self._add("-")
        elif symbol in b"~\r\n\t":
            self._add(" ")

    def _handle_word(self, word: str, number: int | None, position: int) -> int:
        """Process a control word; return the position to continue at, which follows the data of `bin`."""
        self._flush()
        starred, self._is_starred = self._is_starred, False
        if word == "bin":
            return position + max(0, number or 0)
        if word == "u" and number is not None:
            self._handle_unicode(number & 0xFFFF)
            return position
        self._skip = 0
        if word in IGNORED_GROUPS or (starred and word not in READ_THOUGH_STARRED):
            self._state = replace(self._state, is_read=False, in_fonts=word == "fonttbl")
        elif word in HEADER_FOOTER_GROUPS or word == "footnote":
            self._state = replace(
                self._state, section=TextSection.MARGINS if word in HEADER_FOOTER_GROUPS else TextSection.NOTES
            )
            self._add("\n")
        elif word in BREAKS:
            self._add("\n")
        elif word in CHARACTERS:
            self._add(CHARACTERS[word])
        else:
            self._handle_setting(word, number)
        return position

    def _handle_setting(self, word: str, number: int | None) -> None:
        """Process a control word that changes the state or the encoding."""
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

    def _handle_unicode(self, unit: int) -> None:
        """Add a UTF-16 code unit."""
        self._skip = self._state.fallback
        if 0xD800 <= unit < 0xDC00:
            self._high_surrogate = chr(unit)
            return
        text, self._high_surrogate = self._high_surrogate + chr(unit), ""
        self._add(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
