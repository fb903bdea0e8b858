"""Tests that legacy charsets survive an export."""

from pathlib import Path

import pytest

from tests.export.sample_recoveries import ROOT, SampleCapture, export_to_memory, make_recovery
from unlost.export import declare_charset
from unlost.html import extract_text

PAGE = "text/html"
DA = "Да, конечно".encode("koi8-r")


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (b"<title>plain</title>", "koi8-r"),
        (b'<meta charset="koi8-r">' + DA, "KOI8-R"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">' + DA, "koi8-r"),
        (b"<p>" + DA, None),
        (b"<p>caf\xe9 au lait", "iso-8859-1"),
        (b"<p>caf\xe9 au lait", "nonsense"),
        (b"\xef\xbb\xbf<p>" + "Да".encode(), "utf-8"),
    ],
)
def test_page_without_need_of_a_declaration_is_unchanged(body: bytes, charset: str | None) -> None:
    """Nothing is inserted if the page declares the charset, none is known, or browsers guess it."""
    assert declare_charset(body, PAGE, charset) is body


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"<p>"),
        (b"<!DOCTYPE html>", b"<p>"),
        (b'<!doctype html>\n<!-- x --><HTML lang="ru"><head class=a>', b"<title>"),
        (b"<!doctype html><html data-x=\"1>2\" lang='>'>", b"<p>"),
        (b"<!--><!--" + b"x" * 700 + b"--><!doctype html><html><head>", b"<title>"),
        (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN" "x">', b"<div>"),
    ],
)
def test_one_charset_declaration_is_inserted(before: bytes, after: bytes) -> None:
    """It is inserted into the head after the doctype, and nothing else changes."""
    assert declare_charset(before + after + DA, PAGE, "koi8-r") == before + b'<meta charset="KOI8-R">' + after + DA


def test_charset_of_the_server_takes_precedence() -> None:
    """A contradicting declaration of the page is overridden, as in browsers."""
    body = b'<head><meta charset="windows-1251">' + DA
    assert declare_charset(body, PAGE, "koi8-r") == b'<head><meta charset="KOI8-R"><meta charset="windows-1251">' + DA


@pytest.mark.parametrize(
    ("body", "mime", "new"),
    [
        (b'p:after { content: "' + DA, "text/css", b'@charset "KOI8-R";p:after { content: "' + DA),
        (b"<svg><text>" + DA, "image/svg+xml", b'<?xml version="1.0" encoding="KOI8-R"?><svg><text>' + DA),
        (b"<p>\x1b$BF|K\\\x1b(B", "text/html;jp", b'<meta charset="ISO-2022-JP"><p>\x1b$BF|K\\\x1b(B'),
        ("<p>Да".encode("utf-16-le"), PAGE, b"\xff\xfe" + "<p>Да".encode("utf-16-le")),
    ],
)
def test_charset_of_css_svg_and_utf_16_is_declared(body: bytes, mime: str, new: bytes) -> None:
    """Each format has its own declaration."""
    charset = {PAGE: "utf-16le", "text/html;jp": "iso-2022-jp"}.get(mime, "koi8-r")
    assert declare_charset(body, mime.removesuffix(";jp"), charset) == new


@pytest.mark.parametrize(
    ("charset", "text"),
    [("koi8-r", "Да"), ("shift_jis", "日本語ソ"), ("gb18030", "中文"), ("windows-1256", "سلام"), ("utf-8", "Ünï"),
     ("iso-2022-jp", "日本語"), ("utf-16le", "Да"), ("euc-kr", "한국어")],
)  # fmt: skip
def test_text_is_preserved_in_any_charset(tmp_path: Path, charset: str, text: str) -> None:
    """The charset of the header is declared in the page, with rewritten links."""
    body = f'<!doctype html><title>{text}</title><a href="/b.html">{text}</a>'.encode(charset)
    capture = SampleCapture(ROOT, body, header=f"text/html; charset={charset}")
    files, _ = export_to_memory(make_recovery(tmp_path / "r", [capture, SampleCapture(f"{ROOT}b.html", b"b")]))
    page = files["index.html"]
    assert extract_text(page, PAGE, ROOT, None) == extract_text(body, PAGE, ROOT, charset)
    assert "b.html" in page.decode(charset if charset != "iso-2022-jp" else "utf-8", "replace") or charset == "utf-16le"


def test_page_with_declared_charset_differs_in_links_only(tmp_path: Path) -> None:
    """All other bytes are unchanged."""
    body = b'<meta charset=koi8-r><a href="/b">' + DA + b"</a>\xff\xfe"
    files, _ = export_to_memory(
        make_recovery(tmp_path / "r", [SampleCapture(ROOT, body, header="text/html; charset=koi8-r")])
    )
    assert files["index.html"] == body.replace(b'"/b"', b'"b.html"')
