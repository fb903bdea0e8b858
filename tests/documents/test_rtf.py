"""Text of RTF by control word."""

import pytest

from unlost.documents import DocumentKind, DocumentReader


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (rb"{\rtf1\ansi one\par two\tab three\line four}", "one two three four"),
        (rb"{\rtf1 par\b ted\b0 ly}", "partedly"),
        (b"{\\rtf1 line\r\nends mean nothing}", "lineends mean nothing"),
        (rb"{\rtf1\ansicpg1252 Gr\'fc\'dfe}", "Grüße"),
        (rb"{\rtf1\ansicpg1251 \'cf\'f0\'e8\'e2\'e5\'f2}", "Привет"),
        (rb"{\rtf1{\fonttbl{\f0 A;}{\f1\fcharset204 B;}}\f0 x\'e9 {\f1 \'cf} \'e9}", "xé П é"),
        (rb"{\rtf1\ansicpg932 {\'93\'fa\'96\'7b}}", "日本"),
        (rb"{\rtf1\uc1 \u1055?\u-4?x}", "П\ufffcx"),
        (rb"{\rtf1\uc2 \u1055ab{\uc0\u1056 c}\u1057\'3f\'3fd}", "ПРcСd"),  # noqa: RUF001
        (rb"{\rtf1 \u-10179?\u-8704?}", "😀"),
        (rb"{\rtf1{\info{\title Hidden}}{\stylesheet{\s0 Normal;}}{\*\generator G;}seen}", "seen"),
        (rb"{\rtf1{\pict\pngblip 89504e47}a{\*\unknown{b}}c}", "ac"),
        (b"{\\rtf1 a{\\pict\\bin5 }}}}}}b}", "ab"),
        (rb'{\rtf1{\field{\*\fldinst HYPERLINK "http://a"}{\fldrslt link}}}', "link"),
        (rb"{\rtf1{\header top}text{\footnote note} on}", "text on note top"),
        (rb"{\rtf1 a\{b\}\\c\~d\_e\-f}", r"a{b}\c d-ef"),
        (rb"{\rtf1 \ldblquote a\rdblquote\emdash b}", "“a”—b"),
        (rb"{\rtf1 kept{\deleted gone} kept}", "kept kept"),
        (rb"{\rtf1{\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt boxed}}{\shprslt boxed}}}", "boxed"),
        (rb"{\rtf1 a}}}} b", "a b"),
        (rb"{\rtf1 \\'", "\\'"),
        (rb"{\rtf1 a\trowd\cell b\cell\row c}", "a b c"),
    ],
)
def test_rtf_text_is_extracted_by_control_word(documents: DocumentReader, body: bytes, words: str) -> None:
    """Control words are interpreted, and hidden content is omitted."""
    assert documents.extract_text(body, DocumentKind.RTF).text == words
