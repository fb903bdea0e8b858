"""Pages in charsets with a byte for each letter, which are rewritten without being decoded."""

import random

import pytest

from unlost.html import LinkKind, RewriteResult, extract_links, rewrite_links

BASE = "http://h.example/d/p.html"

# What a page is made of; `é` stands for letters that are no ASCII.
PIECES = [
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


def numbered(body: bytes, charset: str) -> RewriteResult:
    """Rewrite a page: the first link that is asked about gets the number 0, all but each fifth the next."""
    asked = 0

    def replace(_uri: str, _use: LinkKind) -> str | None:
        nonlocal asked
        asked += 1
        return f"new/{asked - 1}" if asked % 5 else None

    return rewrite_links(body, "text/html", BASE, charset, replace, drop_base=True, drop_integrity=True, drop_csp=True)


@pytest.mark.parametrize("charset", CHARSETS)
def test_as_in_utf_8(charset: str) -> None:
    """A page is rewritten as the same text in UTF-8 is, and its other letters stay in their charset."""
    dice = random.Random(charset)  # noqa: S311
    python = _PYTHON.get(charset, charset)
    changed = 0
    for _ in range(100):
        page = "".join(dice.choices(PIECES, k=dice.randint(1, 8)))
        page = "".join(dice.choice(CHARSETS[charset]) if letter == "é" else letter for letter in page)
        done = numbered(page.encode(python), charset)
        expected = numbered(page.encode(), "utf-8")
        assert done.body.decode(python) == expected.body.decode()
        assert (done.changed, done.skipped) == (expected.changed, expected.skipped)
        assert extract_links(page.encode(python), "text/html", BASE, charset) == extract_links(
            page.encode(), "text/html", BASE, "utf-8"
        )
        changed += done.changed
    assert changed > 100


def test_bytes_that_are_no_letter() -> None:
    """A byte that a charset does not have is left as it is, and is the sign for that in the address."""
    asked = []

    def replace(uri: str, _use: LinkKind) -> str:
        asked.append(uri)
        return "y"

    page = b"<a href='\xaax'>\xaa<a href=x\xaay>"
    done = rewrite_links(page, "text/html", BASE, "windows-1253", replace)
    assert done.body == b"<a href='y'>\xaa<a href=y>"
    assert asked == ["http://h.example/d/%EF%BF%BDx", "http://h.example/d/x%EF%BF%BDy"]
