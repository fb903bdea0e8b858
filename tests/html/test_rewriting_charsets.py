"""Single-byte charsets are rewritten without decoding."""

import random

import pytest

from unlost.html import LinkKind, RewriteResult, extract_links, rewrite_links

BASE = "http://h.example/d/p.html"

# Parts of a page; `é` stands for non-ASCII letters.
PARTS = [
    "<a href='é/x.html#é' title=é>é</a>",
    "<a é href=x title='é'>",
    "<a href='é&amp;é?x=1&lt;'>",
    "<a href='é&quotx'>",
    "<img src=é.png alt=é><img srcset='é.png 1x, é/é.png 2x'>",
    "<td style='background: url(é.png)'><td style='background: url(x.png)'>",
    "<td style=\"background: url('é&quot;.png#é')\">",
    "<style>/* é */ p { background: url(é.png) } q { content: 'é'; background: url(\"\\65 é\") }</style>",
    "<noscript>é<img src=é.png><style>p { background: url(é.png) }</style></noscript>",
    '<iframe srcdoc="é<a href=&quot;é.html&quot;>é</a>"></iframe>',
    "<svg>é<style>é { fill: url(é.svg#é) }</style><a xlink:href='é'>é</a></svg>",
    "<script src=é.js integrity=é crossorigin=é></script><script>'é<a href=no>'</script>",
    "<object codebase='é/' data=é.swf archive='é.jar,x.jar'></object>",
    "<meta http-equiv=refresh content='5; url=é.html'>",
    "<blockquote cite=é><form action='é'>",
    "<base href='/é/'>",
    "<!-- é <a href=no> -->é",
]

CHARSETS = {
    "windows-1252": "éßÿ",
    "windows-1251": "жЯё",
    "koi8-r": "жЯё",
    "iso-8859-2": "łžß",
    "iso-8859-7": "αΩή",
    "iso-8859-8": "אבת",
    "windows-874": "กขฃ",
    "ibm866": "жЯё",
    "macintosh": "éßŸ",
}
_PYTHON = {"macintosh": "mac_roman", "windows-874": "cp874"}


def rewrite_numbered(body: bytes, charset: str) -> RewriteResult:
    """Replace links by their number, except every fifth one."""
    calls = 0

    def replace(_uri: str, _use: LinkKind) -> str | None:
        nonlocal calls
        calls += 1
        return f"new/{calls - 1}" if calls % 5 else None

    return rewrite_links(body, "text/html", BASE, charset, replace, drop_base=True, drop_integrity=True, drop_csp=True)


@pytest.mark.parametrize("charset", CHARSETS)
def test_single_byte_charset_is_rewritten_like_utf_8(charset: str) -> None:
    """Links are the same as in UTF-8, and other text remains in its charset."""
    rng = random.Random(charset)  # noqa: S311
    python = _PYTHON.get(charset, charset)
    changed = 0
    for _ in range(100):
        page = "".join(rng.choices(PARTS, k=rng.randint(1, 8)))
        page = "".join(rng.choice(CHARSETS[charset]) if letter == "é" else letter for letter in page)
        result = rewrite_numbered(page.encode(python), charset)
        expected = rewrite_numbered(page.encode(), "utf-8")
        assert result.body.decode(python) == expected.body.decode()
        assert (result.changed, result.skipped) == (expected.changed, expected.skipped)
        assert extract_links(page.encode(python), "text/html", BASE, charset) == extract_links(
            page.encode(), "text/html", BASE, "utf-8"
        )
        changed += result.changed
    assert changed > 100


def test_undefined_byte_is_preserved_and_replaced_in_url() -> None:
    """An undefined byte remains in the page and is U+FFFD in URLs."""
    calls = []

    def replace(uri: str, _use: LinkKind) -> str:
        calls.append(uri)
        return "y"

    page = b"<a href='\xaax'>\xaa<a href=x\xaay>"
    result = rewrite_links(page, "text/html", BASE, "windows-1253", replace)
    assert result.body == b"<a href='y'>\xaa<a href=y>"
    assert calls == ["http://h.example/d/%EF%BF%BDx", "http://h.example/d/x%EF%BF%BDy"]
