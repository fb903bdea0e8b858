"""Text extraction is independent of the encoding."""

import pytest

from unlost.html import extract_text

BASE = "http://h.example/"

RUSSIAN = "Съешь ещё этих мягких французских булок"
JAPANESE = "いろはにほへと ちりぬるを カタカナ 漢字"
GERMAN = "Zwölf Boxkämpfer jagen Viktor quer über den großen Deich"

ENCODINGS = [
    (RUSSIAN, ["windows-1251", "koi8-r", "iso-8859-5", "utf-8", "gb18030"]),
    (JAPANESE, ["shift_jis", "euc-jp", "iso-2022-jp", "utf-8", "gb18030"]),
    (GERMAN, ["iso-8859-1", "windows-1252", "iso-8859-15", "macintosh", "utf-8"]),
]
CASES = [(text, encoding) for text, encodings in ENCODINGS for encoding in encodings]
PYTHON = {"macintosh": "mac_roman"}


def make_page(text: str, head: str = "") -> str:
    """Return a page with a text."""
    return f"<html><head>{head}<title>{text}</title></head><body><p>{text}</p><p>{text}</p></body></html>"


def encode(text: str, encoding: str) -> bytes:
    """Encode a text; the encoding has its web name."""
    return text.encode(PYTHON.get(encoding, encoding))


@pytest.mark.parametrize(("text", "encoding"), CASES)
def test_declared_encoding_is_used(text: str, encoding: str) -> None:
    """HTTP header, meta element and XML declaration yield the same text."""
    expected = "\n".join([text] * 3)
    plain = encode(make_page(text), encoding)
    by_meta = encode(make_page(text, f"<meta charset='{encoding}'>"), encoding)
    long = f"<META http-equiv='Content-Type' content='text/html; charset={encoding}'>"
    by_long_meta = encode(make_page(text, long), encoding)
    by_declaration = encode(f"<?xml version='1.0' encoding='{encoding}'?>{make_page(text)}", encoding)
    for body, mime, charset in (
        (plain, "text/html", encoding),
        (plain, f"text/html; charset={encoding}", None),
        (plain, f'text/html;charset="{encoding.upper()}"', None),
        (plain, "text/html; charset=utf-7", encoding),
        (by_meta, "text/html", None),
        (by_meta, "text/html; charset=no-such", None),
        (by_meta, None, None),
        (by_long_meta, "text/html", None),
        (by_declaration, "application/xhtml+xml", None),
        (by_declaration, "text/xml", None),
    ):
        read = extract_text(body, mime, BASE, charset)
        assert read is not None
        assert read.text == expected, (mime, charset)


@pytest.mark.parametrize("text", [RUSSIAN, JAPANESE, GERMAN])
def test_undeclared_unicode_is_detected(text: str) -> None:
    """UTF-8 and UTF-16 are detected with and without byte order mark."""
    expected = "\n".join([text] * 3)
    bodies = [
        make_page(text).encode(encoding) for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
    ]
    bodies.append(b"\xfe\xff" + make_page(text).encode("utf-16-be"))
    for body in bodies:
        for mime in ("text/html", None):
            read = extract_text(body, mime, BASE)
            assert read is not None
            assert read.text == expected


def test_undeclared_western_page_is_windows_1252() -> None:
    """Invalid UTF-8 is read as windows-1252, as in Western browsers."""
    read = extract_text(make_page(GERMAN).encode("latin-1"), "text/html", BASE)
    assert read is not None
    assert read.text == "\n".join([GERMAN] * 3)


@pytest.mark.parametrize("text", [RUSSIAN, JAPANESE, GERMAN])
@pytest.mark.parametrize("mime", ["text/plain", "application/json", "text/css", "text/javascript"])
def test_encoding_of_plain_text_is_from_server_or_bom(text: str, mime: str) -> None:
    """The byte order mark is removed."""
    for body, charset in (
        (text.encode(), None),
        (text.encode("utf-8-sig"), None),
        (text.encode("utf-16"), None),
        (text.encode("utf-16-le"), "utf-16le"),
        (text.encode("utf-16-be"), "utf-16be"),
        (text.encode("utf-8-sig"), "windows-1251"),
    ):
        read = extract_text(body, mime, BASE, charset)
        assert read is not None
        assert read.text == text


def test_charset_rule_of_style_sheet_is_used() -> None:
    """`@charset` declares the encoding of style sheets."""
    sheet = f'@charset "windows-1251"; /* {RUSSIAN} */'
    read = extract_text(sheet.encode("windows-1251"), "text/css", BASE)
    assert read is not None
    assert read.text == sheet
