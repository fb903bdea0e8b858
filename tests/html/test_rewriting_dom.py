"""The DOM of rewritten pages in Chromium: all links are replaced, and nothing else."""

import random
import re
from typing import Any

import pytest
from playwright.sync_api import Page

from unlost.html import rewrite_links

pytestmark = pytest.mark.browser

BASE = "http://h.example/d/p.html"
REPLACEMENT = "NEW"

# Parts of pages. `x` is a link in a browser, `no` is not.
PARTS = [
    "<a href=x>", "<A HREF = 'x'>", "<a\nhref=\"x\"/>", "<a href=x href=no>", "<a href='x&copy=1'>",
    "<a href=x&ltb>", "<a href='&#x78'>", "<a title='a>b' href=x>", "<a title=\"<a href=no>\" href=x>",
    "<a/href=x>", "<a href='x\ny'>", "<img src=x>", "<body background=x>", "<td background=x>",
    "<object data=x></object>", "<embed src=x>", "<video poster=x></video>", "<input type=IMAGE src=x>",
    "<input src=no>", "<frame src=x>", "<img longdesc=x src=x>", "<iframe src=x><a href=no></iframe>",
    "<script src=x></script>", "<link rel=stylesheet href=x>",
    "<svg><image href=x /><use xlink:href=x></use></svg>", "<svg><a xlink:href=x>t</a></svg>",
    "<svg><title><a href=x>", "<svg><foreignObject><a href=x></foreignObject></svg>",
    "<math><mi><a href=x></mi></math>", "<audio src=x></audio>", "<template><a href=x></template>",
    "<table><a href=x></table>", "<select><a href=x></select>", "<noscript><a href=x></noscript>",
    "<!-- <a href=no> -->", "<!--><a href=x>-->", "<!-- <a href=no> --!>", "<!- <a href=no> ->",
    "<? <a href=no> ?>", "<![CDATA[<a href=no>]]>", "<svg><![CDATA[<a href=no>]]></svg>", "</p href=no>",
    "<textarea><a href=no></textarea>", "<title><a href=no></title>", "<xmp><a href=no></xmp>",
    "<script>'<a href=no>'</script>", "<script><!-- <script> <a href=no> </script> <a href=no> --></script>",
    "<script>'</scr'+'ipt><a href=no>'</script>", "<style>/* <a href=no> */</style>",
    "<textarea></textare><a href=no></textarea >", "<form action=no></form>", "<q cite=no></q>", "<a ping=no>",
    "<p class=no title='url(no)'>", "<a href=javascript:no>", "<a href=#no>", "<a href=mailto:no>",
]  # fmt: skip
_LAST = ["<plaintext><a href=no>", "<a href=no", "<a href='no>", "<!-- <a href=no>", "<textarea><a href=no>", ""]
_DOM = """pages => pages.map(text => {
    const found = []
    const walk = node => {
        for (const child of node.childNodes) {
            const attributes = Array.from(child.attributes || [], each => [each.name, each.value])
            found.push([child.nodeName, attributes, child.nodeType === 1 ? '' : child.data || ''])
            walk(child.localName === 'template' ? child.content : child)
        }
    }
    walk(new DOMParser().parseFromString(text, 'text/html'))
    return found
})"""


def generate_pages() -> list[str]:
    """Return each part alone, and random sequences of parts."""
    rng = random.Random(6)  # noqa: S311
    # An unclosed SVG element would change the parsing of later parts.
    closed = [part for part in PARTS if part != "<svg><title><a href=x>"]
    mixed = ["".join(rng.sample(closed, 5)) + rng.choice(_LAST) for _ in range(400)]
    return [*PARTS, *_LAST, *mixed]


def is_link(value: str) -> bool:
    """Return whether a value is the URL of a link."""
    return re.match(r"x", value) is not None


def differences(before: list[Any], after: list[Any]) -> list[object]:
    """Return the differences between two DOMs other than replaced links."""
    if [node[0] for node in before] != [node[0] for node in after]:
        return ["other elements"]
    found: list[object] = []
    for old, new in zip(before, after, strict=True):
        found += [(old, new)] * (old[2] != new[2])
        expected = [[name, REPLACEMENT if is_link(value) else value] for name, value in old[1]]
        found += [(old, new)] * (new[1] != expected)
    return found


def test_rewritten_dom_differs_only_in_links(page: Page) -> None:
    """In hundreds of unusual pages, the browser and the rewriter see the same links."""
    old = generate_pages()
    new = [
        rewrite_links(text.encode(), "text/html", BASE, "utf-8", lambda *_: REPLACEMENT).body.decode() for text in old
    ]
    failures = {
        text: found
        for text, before, after in zip(old, page.evaluate(_DOM, old), page.evaluate(_DOM, new), strict=True)
        if (found := differences(before, after))
    }
    assert failures == {}


def test_dom_comparison_detects_wrong_rewriting(page: Page) -> None:
    """Replaced text and missed links fail the comparison."""
    text = "<title><a href=x></title><a href=x>"
    too_much, too_little = text.replace("href=x", f"href={REPLACEMENT}"), text
    before, one, two = page.evaluate(_DOM, [text, too_much, too_little])
    assert differences(before, one)
    assert differences(before, two)
