"""The XML parts of a zip file, as a stream of elements and text, and no more of it than may be."""

import zipfile
from collections.abc import Callable
from io import BytesIO
from xml.parsers import expat

from unlost.errors import DocumentError
from unlost.pages.documents.ole_names import list_ole_names

_CHUNK_BYTES = 1 << 16
_MANIFEST = "META-INF/manifest.xml"


class OfficeZip:
    """The members of an Office file.

    most: how many bytes may be unpacked of it in all.
    Raises DocumentError if it is no zip file, or has a password.
    """

    def __init__(self, body: bytes, max_bytes: int) -> None:
        if "EncryptedPackage" in list_ole_names(body):
            raise DocumentError("it can be read with a password only", "encrypted")
        try:
            self._file = zipfile.ZipFile(BytesIO(body))
        except zipfile.BadZipFile as error:
            raise DocumentError("it is no whole zip file", "damaged") from error
        self._left = max_bytes
        self.names = self._file.namelist()

    def refuse_encrypted(self) -> None:
        """Raise DocumentError if an OpenDocument file has a password, which only its list of parts says."""
        if _MANIFEST in self.names:
            self.parse(_MANIFEST, make_xml_parser(_refuse_encryption, lambda _: None, lambda _: None))

    def parse(self, name: str, parser: expat.XMLParserType) -> None:
        """Read one part with a parser. Raises DocumentError if it is damaged, encrypted, too big or declares entities.

        Entities are what XML bombs are made of, and what other files are fetched by; Office files have none.
        """
        parser.EntityDeclHandler = _refuse_entity
        try:
            if self._file.getinfo(name).flag_bits & 1:
                raise DocumentError("it can be read with a password only", "encrypted")
            with self._file.open(name) as part:
                while piece := part.read(_CHUNK_BYTES):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise DocumentError("its parts are too big when they are unpacked", "too-big")
                    parser.Parse(piece)
            parser.Parse(b"", True)
        except (zipfile.BadZipFile, expat.ExpatError, EOFError, KeyError) as error:
            raise DocumentError(f"its part {name[:60]!r} is damaged", "damaged") from error


def make_xml_parser(
    start: Callable[[str, dict[str, str]], None], end: Callable[[str], None], text: Callable[[str], None]
) -> expat.XMLParserType:
    """Return a parser that tells elements by their local names: prefixes are anybody's choice."""
    parser = expat.ParserCreate(namespace_separator="|")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition("|")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition("|")[2])
    parser.CharacterDataHandler = text
    return parser


def _refuse_encryption(name: str, _attributes: dict[str, str]) -> None:
    if name == "encryption-data":
        raise DocumentError("it can be read with a password only", "encrypted")


def _refuse_entity(*_: object) -> None:
    raise DocumentError("it declares entities, which Office files do not", "damaged")
