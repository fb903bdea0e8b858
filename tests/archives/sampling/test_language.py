"""Languages are those declared by pages and servers, or unknown."""

from io import BytesIO

import pytest

from unlost.archives import FetchedCapture, capture_language
from unlost.capture import Capture


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        (b'<!DOCTYPE html>\n<HTML class="a" LANG = "pt-BR">', None, "pt"),
        (b"<html lang=en><p>", "de", "en"),
        (b'<html xml:lang="fr">', None, "fr"),
        (b'<html data-lang="fr">', "es", "es"),
        (b'<html lang="">', "de-AT", "de"),
        (b'<html lang="x-klingon">', None, None),
        (b"<p lang=en>", None, None),
        (b"<html>", "de, fr", None),
        (b"<htmlx lang=en>", None, None),
        (b"<html " + b"a" * 200_000 + b" lang=en>", None, None),
        (b" " * 100_000 + b"<html lang=en>", None, None),
        (b"\xff\xfe\x00<html lang='\xc3\xa9'>", "\udcff", None),
    ],
)
def test_language_is_only_what_the_page_declares(body: bytes, header: str | None, expected: str | None) -> None:
    """The page precedes its server, and nothing is guessed."""
    fetched = FetchedCapture(
        Capture("http://a.com/", "com,a)/", "20140101000000"),
        () if header is None else (("content-language", header),),
        BytesIO(body),
    )
    assert capture_language(fetched) == expected
    assert fetched.body.tell() == 0
