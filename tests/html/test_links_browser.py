"""Links with unusual notation, compared with Chromium."""

from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Route

from tests.models import pages as model
from unlost.html import extract_links

pytestmark = pytest.mark.browser

BASE = "http://h.example/d/p.html?q"

# The references of the page in document order, without fragments and empty URLs.
SCRIPT = """() => {
    const all = (selector, name) => [...document.querySelectorAll(selector)].map(element => element[name]);
    const found = {
        links: [...document.links].map(link => link.href),
        images: all('img:not([src=""])', 'src'),
        sheets: all('link[rel~=stylesheet i]', 'href'),
        scripts: all('script[src]', 'src'),
        frames: all('iframe[src]', 'src'),
        objects: all('object[data]', 'data'),
        backgrounds: [...document.querySelectorAll('[style]')].map(element =>
            (getComputedStyle(element).backgroundImage.match(/url\\("(.*?)"\\)/) || ['', ''])[1]),
    };
    const web = address => /^https?:/.test(address) && URL.canParse(address) ? [address.replace(/#.*/s, '')] : [];
    return Object.fromEntries(Object.entries(found).map(([name, each]) => [name, each.flatMap(web)]));
}"""

UNUSUAL_LINKS = r"""
<a href=" x
y	z ">1</a><a href='x?a&amp;b&copy=1&notit;&lt'>2</a><a href=&#x78;&eacute;&#0;&#128;>3</a><a href="..\..\..\w">4</a>
<a href=//Other.EXAMPLE:80/%7e/./a/../b//c>5</a><a href='HTTP:x'>6</a><a href='https:x'>7</a><a href=http:///three>8
</a>
<a href='?r'>9</a><a href='x y"<>`{}|^[]'>10</a><a href="x?y z'&quot;<>`{}|^[]é日">11</a>
<a href=http://u:p@o.example:8080/>12</a>
<a href='http://0x7f.1/'>13</a><a href='http://b&uuml;cher.example/ü'>14</a><a href='http://x.example:99999/'>15</a>
<a href='java
script:x'>16</a><a href='mailto:x'>17</a><a href='x%zz%41%2e%2E/'>18</a><a href='.%2e/x'>19</a>
<a href='http://[::1]:80/'>20</a>
<a href=x#é>21</a><A HREF=x HREF=y>22</A><a/href='z'>23</a><a href=a<b>24</a><a href='C|/x'>25</a><a href='//'>26</a>
<a href='http://ex%41mple.example/'>27</a><a href='http://a<b/'>28</a><a href="\\o.example\x">29</a>
<a href='x?&#128512;'>30</a>
<a href='http://xn--bcher-kva.example/'>31</a><a href='http://faß.example'>32</a><a href='http://1.2.3/'>33</a>
<a href="x　y">34</a>
<area href=area><template><a href=hidden></template>
<img src=' i.png '><img src=''><img src='i.png?ä'><img src=data:,x><image src=j.png>
<link rel='StyleSheet' href=a.css><link rel='alternate stylesheet' title=t href='b.css?é'><script src=s.js></script>
<iframe src=f.html></iframe><object data=o.swf></object>
<p style="background: url( 'b\67 .png' )"></p><p style='background: url(c\)d.png)'></p>
<p style='background:URL(&quot;e é.png&quot;)'></p>
<textarea><a href=no></textarea><!-- <a href=no> --><!--><a href=after-a-short-comment>35</a><script>'<a href=no>'
</script>
<title><a href=no></title><a title='>' href=after-a-bracket>36</a><a href='x
'>37</a></a href=no><a href=unclosed
"""

PAGES = {
    "utf-8": UNUSUAL_LINKS,
    "windows-1252": "<base href='/b/c'><base href=/no/>" + UNUSUAL_LINKS.replace("日", "").replace("\u3000", ""),
    "shift_jis": UNUSUAL_LINKS.translate({ord(letter): f"&#{ord(letter)};" for letter in "éüäß"}),
    "gb18030": UNUSUAL_LINKS,
}


def browser_links(browser: Browser, body: bytes, mime: str) -> dict[str, list[str]]:
    """Return the links that the browser finds in a page at BASE."""

    def fulfill(route: Route) -> None:
        if route.request.url == BASE:
            route.fulfill(body=body, content_type=mime)
        else:
            route.abort()

    page = browser.new_page()
    try:
        page.route("**/*", fulfill)
        page.goto(BASE, wait_until="domcontentloaded")
        browser_result = page.evaluate(SCRIPT)
    finally:
        page.close()
    assert isinstance(browser_result, dict)
    return browser_result


@pytest.mark.parametrize("charset", PAGES)
def test_links_agree_with_browser(browser: Browser, charset: str) -> None:
    """Links, images, style sheets, scripts and frames resolve to the same URLs as in Chromium."""
    body = PAGES[charset].encode(charset)
    browser_result = browser_links(browser, body, f"text/html; charset={charset}")
    assert len(browser_result["links"]) > 30, "the browser did not read the page"
    assert all(browser_result.values())
    # Template contents are not part of the document, but we extract their links.
    hidden = {urljoin(browser_result["links"][0], "hidden")}
    ours = {
        (link.uri, link.kind.value)
        for link in extract_links(body, "text/html", BASE, charset)
        if link.uri not in hidden
    }
    pages = {(uri, "page") for name in ("links", "frames") for uri in browser_result[name]}
    requisites = {
        (uri, "requisite") for name in browser_result if name not in {"links", "frames"} for uri in browser_result[name]
    }
    assert sorted(ours) == sorted(pages | requisites)


def test_simple_link_parser_disagrees_with_browser(browser: Browser) -> None:
    """Python's parser and urljoin would fail the comparison."""
    browser_result = browser_links(browser, UNUSUAL_LINKS.encode(), "text/html; charset=utf-8")
    simple = {uri for uri, use in model.page(UNUSUAL_LINKS, BASE) if use == "page"}
    assert len(set(browser_result["links"]) - simple) > 5
