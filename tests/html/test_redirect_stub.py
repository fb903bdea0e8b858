"""Tests of pages that are nothing but a redirect."""

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


def target(page: str, uri: str = OLD) -> str | None:
    """Return where a page redirects to."""
    return redirect_stub_target(page.encode(), "text/html", uri)


@pytest.mark.parametrize("page", [JEKYLL, MKDOCS, HUGO, MOVED, SCRIPTED])
@pytest.mark.parametrize("written", [NEW, "/new/", "../new/"])
def test_stubs_of_generators_and_people_are_known(page: str, written: str) -> None:
    """Their target is returned as a whole URL, and no rule rejects them."""
    body = page.format(url=written)
    assert target(body) == NEW
    assert classify_page(PageResponse(OLD, "20200101000000", 200, "text/html", body.encode())) is None


def test_an_alias_of_the_home_page_is_a_page() -> None:
    """`/page/1/` of Hugo redirects to the home page, as do pages of error; it says nothing of an error."""
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
def test_other_pages_are_no_stubs(page: str) -> None:
    """Pages that reload, wait, show something, ask for something, or redirect some visitors only."""
    assert target(page) is None


def test_a_stub_may_lead_to_itself() -> None:
    """A page without any text that reloads itself at once was a redirect from another spelling of its URL."""
    assert target(HUGO.format(url=OLD)) == OLD


def test_an_error_page_that_leads_home_is_rejected() -> None:
    """So is one that leads to an error page, or to the home page of somebody else."""
    gone = "<title>Page not found</title>" + REFRESH.format("3; url=/") + "<h1>Page not found</h1>"
    error = REFRESH.format("0; url=http://lost.example/404.html")
    blocked = REFRESH.format("1; url=http://blocked.example/") + "If you are not redirected, follow this link"
    for page in (gone, error, blocked):
        verdict = classify_page(PageResponse(OLD, "20200101000000", 200, "text/html", page.encode()))
        assert verdict is not None
        assert verdict.kind.value == "soft-404"


def test_relative_targets_follow_the_base() -> None:
    """The target is relative to `<base>`, and the charset of the page is minded."""
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
def test_nothing_is_raised(page: str, charset: str | None, uri: str) -> None:
    """Whatever the bytes, the charset and the URL are, the target is a URL of the web, if there is one."""
    found = redirect_stub_target(page.encode("utf-8", "replace"), "text/html", uri, charset)
    assert found is None or found.startswith(("http://", "https://"))


@pytest.mark.parametrize(
    "unit",
    ["<meta http-equiv=refresh ", "location='", "<script>location", "<![CDATA[", "<!--", "<a ", "<a '", "<b a=", "' "],
)
def test_hostile_pages_take_little_time(unit: str) -> None:
    """A page is read up to a length at which nothing takes long."""
    start = time.process_time()
    for length in (30_000, 300_000):
        target(REFRESH.format("0") + unit * (length // len(unit)))
    assert time.process_time() - start < 1.0


@pytest.mark.real_data
def test_real_stubs_are_known_and_good_pages_are_none() -> None:
    """All labelled stubs are known, no good page is called one, and no rule rejects a stub."""
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
