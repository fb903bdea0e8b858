"""Redirect stubs: pages that only redirect."""

import base64
import gzip
import json
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.html.stub_pages import HUGO, JEKYLL, MKDOCS, MOVED, SCRIPTED
from tests.real_data import DATA
from unlost.html import redirect_stub_target
from unlost.quality import PageResponse, classify_page

OLD, NEW = "http://lost.example/old/page.html", "http://lost.example/new/"
PROSE = "<p>The mill grinds on Sundays, and the miller shows the stones, the wheel and the pond to visitors.</p>"


def stub_target(page: str, uri: str = OLD) -> str | None:
    """Return the URL to which a page redirects."""
    return redirect_stub_target(page.encode(), "text/html", uri)


@pytest.mark.parametrize("page", [JEKYLL, MKDOCS, HUGO, MOVED, SCRIPTED])
@pytest.mark.parametrize("written", [NEW, "/new/", "../new/"])
def test_redirect_stub_is_detected(page: str, written: str) -> None:
    """The target is returned as an absolute URL, and the page is not rejected."""
    body = page.format(url=written)
    assert stub_target(body) == NEW
    assert classify_page(PageResponse(OLD, "20200101000000", 200, "text/html", body.encode())) is None


def test_redirect_to_home_page_without_error_is_accepted() -> None:
    """Hugo's `/page/1/` redirects to the home page, as error pages do."""
    body = HUGO.format(url="http://lost.example/").encode()
    uri = "http://lost.example/page/1/"
    assert redirect_stub_target(body, "text/html", uri) == "http://lost.example/"
    assert classify_page(PageResponse(uri, "20200101000000", 200, "text/html", body)) is None


REFRESH = "<meta http-equiv=refresh content='{}'>"


@pytest.mark.parametrize(
    "page",
    [
        REFRESH.format("300; url=/new/") + "moved",
        REFRESH.format("60") + "reloaded",
        REFRESH.format("0; url=/new/") + PROSE * 8,
        REFRESH.format("5; url=page.html") + "<p>The score is 2 : 1",
        REFRESH.format("0; url=http://www.lost.example/old/page.html#x") + "<p>again",
        REFRESH.format("5; url=/new/") + "<img src=intro.gif>",
        REFRESH.format("0; url=javascript:x()") + "moved",
        REFRESH.format("0; url=/new/") + "<form action=/login><input name=user></form>",
        REFRESH.format("0; url=/new/") + "<frameset><frame src=a></frameset>",
        f"<noscript>{REFRESH.format('0; url=/nojs/')}</noscript><script src=app.js></script><div id=app></div>",
        f"<!-- {REFRESH.format('0; url=/new/')} --><p>here",
        "<script>if (top == self) location.href = '/index.html'</script><p>menu",
        "<script>if (screen.width < 800) { location = '/m/' }</script><p>short",
        "<script>top.location = '/index.html'</script><p>menu",
        "<p><a onclick=\"location='/new/'\">Enter</a>",
        "<script>x.location = '/new/'; mylocation = '/new/'</script><p>here",
        "<script>location = '/new/?' + q</script><p>here" + PROSE * 3,
        "<p>refresh the location",
        "",
    ],
)
def test_page_with_content_is_not_a_stub(page: str) -> None:
    """Pages that reload, delay, have content or forms, or redirect only some visitors are not stubs."""
    assert stub_target(page) is None


def test_redirect_to_itself_is_a_stub() -> None:
    """An empty page that reloads itself redirected from another variant of its URL."""
    assert stub_target(HUGO.format(url=OLD)) == OLD


def test_error_page_that_redirects_home_is_soft_404() -> None:
    """Redirects to error pages and to other sites' home pages are soft 404s, too."""
    gone = "<title>Page not found</title>" + REFRESH.format("3; url=/") + "<h1>Page not found</h1>"
    error = REFRESH.format("0; url=http://lost.example/404.html")
    blocked = REFRESH.format("1; url=http://blocked.example/") + "If you are not redirected, follow this link"
    for page in (gone, error, blocked):
        verdict = classify_page(PageResponse(OLD, "20200101000000", 200, "text/html", page.encode()))
        assert verdict is not None
        assert verdict.kind.value == "soft-404"


def test_relative_stub_target_is_resolved_against_base() -> None:
    """The target is decoded with the charset of the page."""
    page = "<meta charset=koi8-r><base href='/b/'>" + REFRESH.format("0; url=ж.html?a=1&amp;b")
    assert redirect_stub_target(page.encode("koi8-r"), "text/html", OLD) == "http://lost.example/b/ж.html?a=1&b"


@given(
    st.lists(
        st.sampled_from(
            [
                "<meta ",
                "http-equiv=refresh ",
                "content='0; url=",
                "/x'",
                ">",
                "<script>",
                "location='",
                "'",
                "</script>",
                "<![x",
                "<!--",
                "-->",
                "<noscript>",
                "</noscript>",
                "<base href=",
                "http://[",
                "\0",
                "é",
                "&#0;",
                "text",
            ]
        )
    ).map("".join)
    | st.text(max_size=80),
    st.sampled_from([None, "utf-8", "hex", "nonsense", "utf-16", "idna"]),
    st.sampled_from([OLD, "http://[", "", "data:,x"]),
)
def test_stub_target_of_arbitrary_page_is_web_url_or_none(page: str, charset: str | None, uri: str) -> None:
    """No bytes, charset or URL raises an exception."""
    redirect_target = redirect_stub_target(page.encode("utf-8", "replace"), "text/html", uri, charset)
    assert redirect_target is None or redirect_target.startswith(("http://", "https://"))


@pytest.mark.parametrize(
    "unit",
    ["<meta http-equiv=refresh ", "location='", "<script>location", "<![CDATA[", "<!--", "<a ", "<a '", "<b a=", "' "],
)
def test_stub_detection_of_hostile_page_takes_bounded_time(unit: str) -> None:
    """Only the beginning of a page is read."""
    start = time.process_time()
    for length in (30_000, 300_000):
        stub_target(REFRESH.format("0") + unit * (length // len(unit)))
    assert time.process_time() - start < 1.0


@pytest.mark.real_data
def test_real_stubs_are_detected_without_false_positives() -> None:
    """All labelled stubs are detected, no good page is, and no stub is rejected."""
    stubs: Counter[str] = Counter()
    rejected = 0
    with gzip.open(DATA / "pages" / "real-pages.jsonl.gz") as lines:
        for line in lines:
            row = json.loads(line)
            body = base64.b64decode(row["body_base64"])
            stubs[row["label"]] += redirect_stub_target(body, "text/html", row["uri"]) is not None
            if row["label"] == "redirect-stub":
                rejected += (
                    classify_page(PageResponse(row["uri"], "20200101000000", 200, "text/html", body)) is not None
                )
    assert (stubs["redirect-stub"], stubs["good"], stubs["function-page"], rejected) == (25, 0, 0, 0)
