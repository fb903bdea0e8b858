"""Text of unusual pages, compared with Chromium."""

import re

import pytest
from playwright.sync_api import Page

from unlost.html import extract_text

pytestmark = pytest.mark.browser

BASE = "http://h.example/"

PAGE = r"""<!doctype html><title>T&eacute;<b></title><body>
<p>un<b>lo</b>st<i>!</i>a<p>second<div>third</div>fourth<span>fifth</span><br>sixth<hr>seventh
<table><caption>cap</caption><thead><tr><th>h1<th>h2<tbody><tr><td>c1</td><td>c2</td></table>after
<ul><li>l1<li>l2<ol><li>l3</ol></ul><dl><dt>t<dd>d</dl><pre>
 p1
p2</pre><blockquote>q</blockquote><center>m</center>
<script>var x = "<p>script</p>"; // </p></script><style>p { content: "style" }</style><template><p>tmpl</p></template>
<noscript>noscr</noscript><iframe>fallback</iframe><noembed>noem</noembed>
<video>vid<p>eo</p></video>v<audio>aud</audio>a<canvas>can<div>vas</div></canvas>c<datalist><option>dl</datalist>d
<!-- comment <p> -->x<!-->y<!--->z<!-- --!>w<!-- -- > -> -->u<!bogus>v<?pi x?>q</ bogus>r</>s
&lt;p&gt; &eacute;&#233;&copy &notit; &#128; AT&T &amp;amp; 1 < 2 <3 a&nbsp;b
<p title='>'>t1<p title="<q>">t2<p a'>t3<p =x>t4<p/>t5<svg><desc>no</desc><style>no</style>
<text>s1</text><text>s2<tspan>s3</tspan></text><script>no</script></svg>
<div>in<canvas></div>out<p>my<my-own>el</my-own>em<wbr>ent<xmp><b>xmp&amp;</xmp>
<details open><summary>sum</summary>det</details>
<figure><figcaption>fig</figcaption></figure><fieldset><legend>leg</legend>fs</fieldset><h1>h</h1><form>f</form>
un</p>stray<section>sec</section><article>art</article><nav>nav</nav>e1<em>e2</em><u>e3</u>
<svg><g/><text>g1</text></svg><math><mi>m1</mi></math>
"""


def displayed_words(page: Page, body: str) -> list[str]:
    """Return the words that the browser displays, after those of the title."""
    page.route("**/*", lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))
    page.goto(BASE)
    return split_words(page.evaluate("document.title + '\\n' + document.body.innerText"))


def split_words(text: str) -> list[str]:
    """Split a text at white space."""
    return re.split(r"[ \t\n\r\f]+", text.strip())


def test_text_agrees_with_browser(page: Page) -> None:
    """The words and their boundaries equal those displayed by Chromium."""
    read = extract_text(PAGE.encode(), "text/html", BASE, "utf-8")
    assert read is not None
    assert split_words(read.text) == displayed_words(page, PAGE)


def test_simple_tag_removal_disagrees_with_browser(page: Page) -> None:
    """Removing tags by a regular expression would fail the comparison."""
    simple = re.sub(r"<[^>]*>", "", PAGE)
    assert len(set(split_words(simple)) ^ set(displayed_words(page, PAGE))) > 20
