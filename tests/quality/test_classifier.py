"""Detection and false-positive rates on labelled pages, and limits of the classifier."""

import time

import pytest

from tests.quality.classified import (
    classified_examples,
    classified_held_out,
    count_labelled_bad,
    is_detected,
    is_labelled_bad,
    real_pages,
    to_context,
    to_page_response,
)
from tests.quality.examples import BAD, GOOD, examples_with_labels
from unlost.quality import (
    ClassifierContext,
    PageResponse,
    ReferencePage,
    VerdictKind,
    classify_page,
    is_suspicious,
    make_reference_page,
)

MIN_DETECTION_RATE = 0.95  # of the bad examples
MAX_FALSE_POSITIVES = 2  # of the good examples
MAX_FALSE_POSITIVE_RATE = 0.01  # of real pages
DATE = "20140102030405"


def make_page(body: str, uri: str = "http://a.example/b.html", title: str = "A page") -> PageResponse:
    """Return a page with this body."""
    return PageResponse(
        uri, DATE, 200, "text/html", f"<title>{title}</title><body>{body}</body>".encode(), charset="utf-8"
    )


def test_bad_pages_are_detected() -> None:
    """At least 95 % have an accepted label."""
    bad = [pair for pair in classified_examples() if pair[0].label in BAD]
    missed = [(example.label, example.name, verdict) for example, verdict in bad if not is_detected(example, verdict)]
    assert len(missed) <= (1 - MIN_DETECTION_RATE) * len(bad), missed


@pytest.mark.parametrize("label", BAD)
def test_bad_pages_of_each_kind_are_detected(label: str) -> None:
    """At least 90 % of each kind are rejected with any label."""
    verdicts = [verdict for example, verdict in classified_examples() if example.label == label]
    assert sum(verdict is not None for verdict in verdicts) >= 0.9 * len(verdicts)


def test_good_pages_are_accepted() -> None:
    """At most two good examples are rejected."""
    false_positives = [
        (example.name, verdict) for example, verdict in classified_examples() if example.label == GOOD and verdict
    ]
    assert len(false_positives) <= MAX_FALSE_POSITIVES, false_positives


def test_verdict_reason_is_printable_line() -> None:
    """Each verdict has a human-readable reason."""
    for _, verdict in classified_examples():
        assert verdict is None or (verdict.reason.isprintable() and 10 < len(verdict.reason) < 200), verdict


def test_held_out_pages_have_known_errors() -> None:
    """The results after one inspection are fixed; docs/pages.md has the figures from before."""
    missed = [
        each.name for each, verdict in classified_held_out() if each.label in BAD and not is_detected(each, verdict)
    ]
    false_positives = [
        each.name for each, verdict in classified_held_out() if each.label == GOOD and verdict is not None
    ]
    assert missed == ["en-instalments-2022"]
    assert false_positives == ["en-net-art-nothing"]


@pytest.mark.real_data
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_real_pages_are_accepted() -> None:
    """At most 1 % of real pages are rejected that are not labelled bad; all labelled ones are rejected."""
    pages = list(real_pages())
    bad = [page for page in pages if is_labelled_bad(page.uri, page.datetime)]
    rejected = [page.uri for page in pages if page not in bad and classify_page(page) is not None]
    assert len(pages) > 200
    assert len(rejected) <= MAX_FALSE_POSITIVE_RATE * len(pages), rejected
    assert [page.uri for page in bad if classify_page(page) is None] == []
    assert len(bad) == count_labelled_bad()  # every labelled capture exists


@pytest.mark.parametrize(
    "phrase",
    [
        "Page not found",
        "This domain is for sale",
        "You must be logged in",
        "We value your privacy and use cookies: accept all",
    ],
)
def test_long_page_with_error_phrase_is_accepted(phrase: str) -> None:
    """A page with much own text may contain such a phrase, even in a heading."""
    prose = "".join(
        f"<p>On day {day} we walked along the river, over the hill and back to the old mill.</p>" for day in range(40)
    )
    assert classify_page(make_page(f"<h1>{phrase}</h1>{prose}<p>{phrase}.</p>", title=phrase)) is None
    assert classify_page(make_page(f"<h1>{phrase}</h1><p>{phrase}.</p>", title=phrase)) is not None


def test_site_template_text_is_ignored() -> None:
    """Lines shared with other pages of the site are not a page's own text."""
    template = "".join(
        f"<p>The society for the old mill and its river was founded in {year} by the miller.</p>"
        for year in range(1900, 1910)
    )
    other = make_reference_page(make_page(f"{template}<p>The mill stands at the river.", "http://a.example/mill.html"))
    page = make_page(f"{template}<p>Sorry, this page does not exist.</p>")
    assert classify_page(page) is None
    verdict = classify_page(page, ClassifierContext(siblings=(other,)))
    assert verdict is not None
    assert verdict.kind is VerdictKind.SOFT_404


def test_page_equal_to_random_url_response_is_soft_404() -> None:
    """The home page is accepted even if it equals that response."""
    body = "<p>Welcome to the mill, open on Sundays from ten to four, entrance at the bridge, dogs on a lead.</p>"
    random = make_reference_page(make_page(body, "http://a.example/qwzx"))
    assert classify_page(make_page(body)) is None
    assert classify_page(make_page(body), ClassifierContext(random_url=random)) is not None
    assert classify_page(make_page(body, "http://a.example/"), ClassifierContext(random_url=random)) is None


def test_hijacked_site_needs_earlier_page_of_other_topic() -> None:
    """Spam is suspicious, but rejected only if an earlier page has another topic."""
    spam = (
        "<p>Online casino bonus: free spins, slots, poker, roulette and blackjack. Bet now and win the jackpot!</p>" * 3
    )
    page = make_page(spam, "http://mill.example/")
    mill = ReferencePage(
        "http://mill.example/",
        "20080102030405",
        "The old mill\nThe society for the mill looks after the wheel, the pond and the bridge.",
    )
    casino = ReferencePage(
        "http://mill.example/",
        "20080102030405",
        "Casino Mill\nSlots, poker, roulette and blackjack, every night. Jackpot on Sundays. Bet wisely.",
    )
    assert is_suspicious(page)
    assert classify_page(page) is None
    assert classify_page(page, ClassifierContext(earlier=(casino,))) is None
    verdict = classify_page(page, ClassifierContext(earlier=(mill,)))
    assert verdict is not None
    assert verdict.kind is VerdictKind.HIJACKED
    assert not is_suspicious(make_page("<p>The old mill and its pond</p>"))


def test_words_of_earlier_pages_are_counted_once() -> None:
    """All pages of a site share the word counts of the earlier pages."""
    from unlost.quality import hijacked

    earlier = tuple(
        ReferencePage(
            f"http://mill.example/{number}",
            "20080102030405",
            f"The old mill, wheel number {number}, pond and bridge. " * 4,
        )
        for number in range(4)
    )
    pages = [
        make_page(f"<p>The miller of {year} kept the wheel, the pond and the bridge.</p>" * 3)
        for year in range(1900, 1910)
    ]
    hijacked._count_words_cached.cache_clear()
    assert [classify_page(page, ClassifierContext(earlier=earlier)) for page in pages] == [None] * 10
    assert hijacked._count_words_cached.cache_info().misses == 5  # the four, and all of them together


ESTATE = "<h1>Domaine à vendre</h1><p>Quatorze hectares de vignes au nord de la vallée, avec un chai et une maison.</p>"


def test_moved_page_is_accepted_unless_redirected_home() -> None:
    """A redirect to another page is good, a redirect to a home page is a soft 404."""
    moved = '<meta http-equiv="refresh" content="5; URL={}"><h1>Seite umgezogen</h1><p>Diese Seite ist umgezogen.</p>'
    assert classify_page(make_page(moved.format("/neu/b.html"), title="Seite umgezogen")) is None
    assert classify_page(make_page(moved.format("/"), title="Seite umgezogen")) is not None
    assert classify_page(make_page(moved.format("http://b.example/c"), title="Seite umgezogen")) is None
    assert classify_page(make_page(moved.format("http://b.example/"), title="Seite umgezogen")) is not None


def test_ambiguous_parking_phrase_needs_further_evidence() -> None:
    """Other text or the host name decides the meaning of an ambiguous word."""
    assert classify_page(make_page(f"{ESTATE}<p>Faire une offre</p>", title="Domaine à vendre")) is None
    assert classify_page(make_page("<h1>a.example</h1><p>Domaine à vendre</p>", title="Domaine à vendre")) is not None


def test_ambiguous_not_found_phrase_with_content_is_accepted() -> None:
    """Ambiguous phrases need further evidence if the page has other content."""
    cat = "<p>Tommy, a ginger cat with white paws, was last seen in Mill Lane on the ninth of December.</p>"
    assert classify_page(make_page(f"<h1>Still not found</h1>{cat}", title="Tommy: not found")) is None
    assert classify_page(make_page("<h1>Not found</h1>", title="Not found")) is not None
    assert classify_page(make_page(f"<p>symbol not found</p>{cat}")) is None


def test_home_page_with_login_form_is_accepted() -> None:
    """A small page with a password field is a wall, except at the root without a login message."""
    box = "<form>Sign in<br>Name <input name=n><br>Password <input type=password></form><h3>News</h3>New map<br>Results"
    assert classify_page(make_page(box, "http://a.example/")) is None
    assert classify_page(make_page(box, "http://a.example/minutes")) is not None
    with_message = f"<h1>You must be logged in</h1>{box}"
    assert classify_page(make_page(with_message, "http://a.example/")) is not None


@pytest.mark.parametrize(
    ("title", "expected"), [("Page not found", "title or heading contains"), ("Error", 'contains "cannot be found"')]
)
def test_verdict_reason_names_location_of_phrase(title: str, expected: str) -> None:
    """The reason names the title only if the phrase is in it."""
    body = "<p>Menu<p>The item that you asked for cannot be found<p>Home"
    verdict = classify_page(make_page(body, "http://a.example/x", title))
    assert verdict is not None
    assert verdict.reason.startswith(expected)


def test_non_html_or_empty_response_is_accepted() -> None:
    """Images and empty bodies have no words."""
    assert (
        classify_page(PageResponse("http://a.example/a.gif", DATE, 200, "image/gif", b"GIF89a page not found")) is None
    )
    assert classify_page(PageResponse("http://a.example/", DATE, None, None, b"")) is None


HOSTILE = {
    "tags without end": b"<h1" * 400_000,
    "headings that never end": b"<h1>not found" * 200_000,
    "one line": b"page not found " * 200_000,
    "many lines": b"<p>page not found</p>" * 100_000,
    "no words": b"\xff\x00" * 500_000,
    "titles": b"<title>" * 200_000,
    "spaces": b"<title>a" + b" " * 1_000_000 + b"</title>",
    "noscript": b"<noscript>" * 100_000,
    "alt": b'<img alt="' * 100_000,
    "refresh": b"<meta http-equiv=refresh " * 50_000,
    "words without spaces": ("見つかりません" * 100_000).encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_page_is_classified_in_bounded_time(name: str) -> None:
    """Only a bounded part of a page is inspected."""
    body = HOSTILE[name]
    reference = ReferencePage("http://a.example/", "20080102030405", body[:20_000].decode("utf-8", "replace"))
    start = time.process_time()
    classify_page(
        PageResponse("http://a.example/a", DATE, 200, "text/html", body),
        ClassifierContext((reference, reference), (reference,), reference, reference),
    )
    assert time.process_time() - start < 1.5


@pytest.mark.parametrize("uri", ["http://[", "", "x", "http://a.example:99999/", "\udcff"])
def test_invalid_page_url_is_accepted(uri: str) -> None:
    """Archives may list any URL."""
    assert classify_page(make_page("<p>The old mill</p>", uri)) is None


@pytest.mark.parametrize("target", ["http://[", "//[::1", "http://a.example:x/", "\udcff"])
def test_redirect_to_invalid_url_raises_no_exception(target: str) -> None:
    """Refresh targets and scripts may contain any text."""
    body = f'<meta http-equiv="refresh" content="0; url={target}">'.encode("utf-8", "replace")
    classify_page(PageResponse("http://a.example/b", DATE, 200, "text/html", body))
    classify_page(PageResponse("http://a.example/b", DATE, 200, "text/html", b"<script>location='%s'</script>" % body))


def test_good_pages_are_accepted_without_context() -> None:
    """At most one good page needs its context."""
    false_positives = [
        each.name
        for each in examples_with_labels(GOOD)
        if each.context and classify_page(to_page_response(each)) is not None
    ]
    assert len(false_positives) <= 1, false_positives
    assert any(to_context(each).earlier for each in examples_with_labels(GOOD))
