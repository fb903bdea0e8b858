"""Of all captures of a page, the one is fetched first that is most likely to be it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost import dates
from unlost.capture import Capture
from unlost.errors import DateError
from unlost.recover import (
    CapturePreference,
    CaptureQuality,
    RecoverOptions,
    RecoveryScope,
    distinct_versions,
    has_same_payload,
    listed_quality,
    rank_captures,
    resolve_revisits,
    stored_quality,
)

PAGE = "http://www.lost.example/a/page.html"
NAME = "lost.example/a/page.html"
NOTHING = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
BODY = "sha1:" + "A" * 32
is_own = RecoveryScope.of(RecoverOptions("http://lost.example/")).is_own


def capture(date: str = "20100101000000", status: int | None = 200, **more: object) -> Capture:
    """Return a capture of the page."""
    given = {"uri": PAGE, "key": "example,lost)/a/page.html", "archive": "a", "digest": BODY, "length": 100}
    return Capture(datetime=dates.pad(date), status=status, **(given | more))  # type: ignore[arg-type]


WORTHS = [
    ("as captured", {"status": 200}, CaptureQuality.GOOD),
    ("said to be as captured", {"status": 200, "migrated": False}, CaptureQuality.GOOD),
    ("a copy of another server", {"status": 203}, CaptureQuality.GOOD),
    ("changed by the archive", {"status": 200, "migrated": True}, CaptureQuality.MIGRATED),
    ("no status", {"status": None}, CaptureQuality.UNKNOWN),
    ("an unresolved revisit", {"status": None, "revisit": True}, CaptureQuality.UNKNOWN),
    ("an unresolved revisit that was told 304", {"status": 304, "revisit": True}, CaptureQuality.UNKNOWN),
    ("a small revisit", {"status": 200, "revisit": True, "length": 0}, CaptureQuality.GOOD),
    ("a piece", {"status": 206}, CaptureQuality.PARTIAL),
    ("a redirect on the site", {"status": 301, "redirect": "http://lost.example/b"}, CaptureQuality.REDIRECT),
    ("a redirect without a host", {"status": 302, "redirect": "../b"}, CaptureQuality.REDIRECT),
    ("the same where only keys are kept", {"status": 302, "redirect": "../b", "uri": ""}, CaptureQuality.REDIRECT),
    ("a redirect to nobody knows where", {"status": 302, "digest": NOTHING}, CaptureQuality.REDIRECT),
    ("a redirect with an empty body", {"status": 302, "digest": NOTHING, "redirect": "/b"}, CaptureQuality.REDIRECT),
    ("a redirect away", {"status": 302, "redirect": "http://parked.example/"}, CaptureQuality.OFFSITE_REDIRECT),
    (
        "a redirect to another port",
        {"status": 302, "redirect": "http://lost.example:81/"},
        CaptureQuality.OFFSITE_REDIRECT,
    ),
    ("a redirect to no page", {"status": 302, "redirect": "mailto:me@lost.example"}, CaptureQuality.OFFSITE_REDIRECT),
    ("a redirect to nonsense", {"status": 302, "redirect": "http://[x/"}, CaptureQuality.OFFSITE_REDIRECT),
    ("not found", {"status": 404}, CaptureQuality.ERROR),
    ("not found, by the archive", {"status": 404, "migrated": True}, CaptureQuality.ERROR),
    ("an accident", {"status": 503}, CaptureQuality.ERROR),
    ("no status that there is", {"status": 999}, CaptureQuality.ERROR),
    ("the digest of nothing", {"status": 200, "digest": NOTHING}, CaptureQuality.EMPTY),
    ("the digest of nothing, without a status", {"status": None, "digest": NOTHING}, CaptureQuality.EMPTY),
    ("another digest of nothing", {"digest": "md5:d41d8cd98f00b204e9800998ecf8427e"}, CaptureQuality.EMPTY),
    ("no bytes", {"status": 200, "length": 0}, CaptureQuality.EMPTY),
    ("no content", {"status": 204}, CaptureQuality.NO_CONTENT),
    ("not modified, and no revisit", {"status": 304}, CaptureQuality.NO_CONTENT),
    (
        "a redirect to https",
        {"status": 301, "redirect": "https://lost.example/a/page.html"},
        CaptureQuality.SELF_REDIRECT,
    ),
    ("a redirect to itself, relative", {"status": 301, "redirect": "page.html#top"}, CaptureQuality.SELF_REDIRECT),
    ("a redirect to other letters", {"status": 301, "redirect": "/A/page.html"}, CaptureQuality.REDIRECT),
]


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in WORTHS], ids=[row[0] for row in WORTHS])
def test_what_an_index_says_is_worth(fields: dict[str, object], expected: CaptureQuality) -> None:
    """Each kind of capture is known by its index."""
    assert listed_quality(capture(**fields), is_own, NAME) is expected  # type: ignore[arg-type]


def test_letter_case_makes_another_page_unless_it_does_not_count() -> None:
    """With `--ignore-case`, a redirect to capitals leads to the page itself."""
    moved = capture(status=301, redirect="/A/Page.html")
    assert listed_quality(moved, is_own, NAME, ignore_case=True) is CaptureQuality.SELF_REDIRECT


COPIES = [
    ({}, 10, None, CaptureQuality.GOOD),
    ({"status": None}, 10, None, CaptureQuality.GOOD),
    ({"migrated": True}, 10, None, CaptureQuality.MIGRATED),
    ({}, 0, None, CaptureQuality.EMPTY),
    ({}, 0, "length", CaptureQuality.NO_CONTENT),
    ({"digest": NOTHING}, 10, None, CaptureQuality.GOOD),
    ({}, 10, "length", CaptureQuality.PARTIAL),
    ({"status": 206}, 10, None, CaptureQuality.PARTIAL),
    ({"status": 404}, 10, "length", CaptureQuality.ERROR),
    ({"status": 302, "redirect": "/b"}, 0, None, CaptureQuality.REDIRECT),
    ({"status": 302, "redirect": "http://parked.example/"}, 0, None, CaptureQuality.OFFSITE_REDIRECT),
    ({"status": 302, "redirect": PAGE}, 10, None, CaptureQuality.SELF_REDIRECT),
    ({"status": 304}, 0, None, CaptureQuality.NO_CONTENT),
]


@pytest.mark.parametrize(("fields", "size", "truncated", "expected"), COPIES)
def test_what_came_is_judged_by_its_body(
    fields: dict[str, object], size: int, truncated: str | None, expected: CaptureQuality
) -> None:
    """What an index said of body and digest does not matter once the body is there."""
    came = capture(**fields)  # type: ignore[arg-type]
    assert stored_quality(came, is_own, NAME, size=size, truncated=truncated) is expected


moments = st.datetimes(datetime(1996, 1, 1), datetime(2024, 12, 31)).map(lambda d: d.strftime("%Y%m%d%H%M%S"))  # noqa: DTZ001
captures = st.builds(
    capture,
    moments,
    st.sampled_from([200, 200, 200, None, 206, 301, 302, 304, 404, 500, 204]),
    archive=st.sampled_from(["a", "b", "c", None]),
    digest=st.sampled_from([None, NOTHING, BODY, "sha1:" + "B" * 32, "sha256:" + "00" * 32, "unlabelled"]),
    length=st.sampled_from([None, 0, 100]),
    redirect=st.sampled_from([None, "/b", PAGE, "http://parked.example/", "http://[x/"]),
    migrated=st.sampled_from([None, True, False]),
    revisit=st.sampled_from([False, False, True]),
    revisit_of=st.sampled_from([None, None, (PAGE, "20100101000000")]),
    uri=st.sampled_from([PAGE, NAME, "https://lost.example/a/page.html"]),
)
lists = st.lists(captures, max_size=8)
days = st.one_of(st.none(), moments, moments.map(lambda moment: moment[:4]))
begins, ends = (
    st.sampled_from([None, None, "1998", "20020304"]),
    st.sampled_from([None, None, "2015", "20200304050607"]),
)
wishes = st.builds(CapturePreference, days, days, begins, ends, st.booleans(), st.booleans())
# Nothing but what is surely one or the other, so that they meet in nearly every list.
good = st.builds(capture, moments, archive=st.sampled_from("ab"), migrated=st.sampled_from([None, True, False]))
bad = st.one_of(
    st.builds(capture, moments, st.sampled_from([404, 410, 500, 503, 204, 301])),
    st.builds(capture, moments, digest=st.just(NOTHING)),
    st.builds(capture, moments, length=st.just(0)),
    st.builds(capture, moments, st.just(302), redirect=st.sampled_from(["/b", PAGE, "http://parked.example/"])),
)


def is_surely_good(each: Capture) -> bool:
    """Return whether an index says, without any thought, that the page is there."""
    return each.status == 200 and not each.revisit and each.digest != NOTHING and each.length != 0


def is_surely_bad(each: Capture) -> bool:
    """Return whether an index says, without any thought, that something else is there."""
    has_no_body = each.status in (204, 304) or each.digest == NOTHING or each.length == 0
    return not each.revisit and each.status is not None and (each.status >= 300 or has_no_body)


@given(st.one_of(st.lists(st.one_of(good, bad), min_size=2, max_size=5), lists), wishes)
def test_nothing_bad_ever_beats_an_older_good_capture(found: list[Capture], wish: CapturePreference) -> None:
    """A 404, a redirect or an empty body never comes before a good capture, whatever the dates and wishes."""
    order = [each for _, each in rank_captures(found, wish, is_own, NAME)]
    first_bad = next((i for i, each in enumerate(order) if is_surely_bad(each)), len(order))
    assert not any(is_surely_good(each) for each in order[first_bad:])


@given(lists, wishes, st.randoms(use_true_random=False))
def test_the_order_of_asking_does_not_matter(found: list[Capture], wish: CapturePreference, random: object) -> None:
    """Whichever archive answers first, the same capture is chosen."""
    expected = rank_captures(found, wish, is_own, NAME)
    random.shuffle(found)  # type: ignore[attr-defined]
    order = rank_captures(found, wish, is_own, NAME)
    assert order == expected


def test_captures_that_differ_in_little_have_one_order() -> None:
    """Also where only the format tells two captures of one moment apart, and the wish does not care."""
    both = [capture(migrated=True), capture(migrated=False)]
    wish = CapturePreference(most_recent=True)
    assert rank_captures(both, wish, is_own, NAME) == rank_captures(both[::-1], wish, is_own, NAME)


@given(lists, wishes)
def test_of_equal_worth_the_closest_comes_first(found: list[Capture], wish: CapturePreference) -> None:
    """Captures of one worth are in the order of their distance to the wished date, or the last first; in their time."""
    date = wish.page_datetime if wish.is_requisite and wish.page_datetime else wish.at
    order = rank_captures(found, wish, is_own, NAME)
    low, high = dates.pad(wish.first or "0001"), dates.pad(wish.last or "9999", round_up=True)
    assert len(order) == sum(low <= each.datetime <= high for each in found)

    def distance(each: Capture) -> float:
        if date is None:
            return -float(each.datetime)
        moment, *ends = map(dates.to_datetime, (each.datetime, dates.pad(date), dates.pad(date, round_up=True)))
        return 0.0 if ends[0] <= moment <= ends[1] else min(abs((moment - end).total_seconds()) for end in ends)

    for value in CaptureQuality:
        distances = [distance(each) for mine, each in order if mine is value]
        if not (wish.most_recent and value in (CaptureQuality.GOOD, CaptureQuality.MIGRATED)):
            assert distances == sorted(distances)
    if wish.most_recent:
        fine = [distance(each) for value, each in order if value in (CaptureQuality.GOOD, CaptureQuality.MIGRATED)]
        assert fine == sorted(fine)
    assert [value for value, _ in order if value > CaptureQuality.MIGRATED] == sorted(
        v for v, _ in order if v > CaptureQuality.MIGRATED
    )


def test_canonical_comes_before_migrated_unless_the_last_is_wished() -> None:
    """The archive's own format is second choice, also where it is younger."""
    old, young = capture("2005"), capture("2015", migrated=True, digest=None)
    assert rank_captures([young, old], CapturePreference(), is_own, NAME)[0] == (CaptureQuality.GOOD, old)
    assert rank_captures([old, young], CapturePreference(most_recent=True), is_own, NAME)[0] == (
        CaptureQuality.MIGRATED,
        young,
    )


def test_a_requisite_is_close_to_its_page() -> None:
    """A style sheet of the time of its page is taken, and not that of the wished date or the last one."""
    sheets = [capture(year) for year in ("2004", "2009", "2015")]
    wish = CapturePreference(at="2015", page_datetime="20040501000000", is_requisite=True)
    assert rank_captures(sheets, wish, is_own, NAME)[0][1] == sheets[0]
    assert rank_captures(sheets, replace(wish, is_requisite=False), is_own, NAME)[0][1] == sheets[2]
    assert rank_captures(sheets, CapturePreference(at="2010"), is_own, NAME)[0][1] == sheets[1]
    assert rank_captures(sheets, CapturePreference(), is_own, NAME)[0][1] == sheets[2]


def test_a_bad_date_is_told() -> None:
    """Who wishes for the 31st of June is told that there is none."""
    with pytest.raises(DateError):
        rank_captures([], CapturePreference(at="20100631"), is_own, NAME)


def test_a_bad_date_of_an_archive_comes_last() -> None:
    """A capture whose date does not exist is far from every date, and no reason to stop."""
    broken = replace(capture(), datetime="20100231999999")
    fine = capture("1996")
    assert [each for _, each in rank_captures([broken, fine], CapturePreference(at="2015"), is_own, NAME)] == [
        fine,
        broken,
    ]


def resolved_slowly(found: list[Capture]) -> list[Capture]:
    """Return what `resolved` should: for each revisit, all captures are looked at."""

    def mended(revisit: Capture) -> Capture:
        originals = sorted(
            (each for each in found if each.status is not None and not each.revisit),
            key=lambda each: (each.datetime, each.archive or "", each.uri),
        )
        named = [each for each in originals if (each.uri, each.datetime) == revisit.revisit_of]
        alike = [each for each in originals if has_same_payload(each, revisit)]
        groups = [[each for each in named if each.archive == revisit.archive], named]
        groups += [[each for each in alike if each.archive == revisit.archive], alike]
        group = next((group for group in groups if group), None)
        if not group:
            return revisit
        before = [each for each in group if each.datetime <= revisit.datetime]
        original = before[-1] if before else group[0]
        if revisit.status not in (None, 304):
            return replace(revisit, mime=revisit.mime or original.mime)
        target = revisit.redirect or original.redirect
        return replace(revisit, status=original.status, redirect=target, mime=revisit.mime or original.mime)

    return [mended(each) if each.revisit else each for each in found]


repeating = st.builds(
    capture,
    st.integers(2001, 2020).map(str),
    st.sampled_from([200, 404, 302, None, 304]),
    archive=st.sampled_from(["a", "b", None]),
    digest=st.sampled_from([BODY, "unlabelled", None]),
    mime=st.sampled_from(["text/html", None]),
    redirect=st.sampled_from(["/b", None]),
    revisit=st.booleans(),
    revisit_of=st.sampled_from([None, None, (PAGE, "20100101000000")]),
)


@given(st.lists(repeating, max_size=10, unique_by=lambda each: (each.datetime, each.archive)))
def test_revisits_are_resolved_as_by_looking_at_all(found: list[Capture]) -> None:
    """Every revisit has status and type of what it names or of its own digest, its own archive's first."""
    assert resolve_revisits(found) == resolved_slowly(found)


def test_a_revisit_repeats_its_own_archive_first() -> None:
    """The same body was a page in one archive and an error page in another: each revisit is what its archive says."""
    fine, error = capture("2005", mime="text/html"), capture("2006", status=404, archive="b", mime="text/plain")
    again = [capture("2010", None, archive=archive, revisit=True) for archive in ("a", "b", "c")]
    after = resolve_revisits([*again, fine, error])[:3]
    assert [(each.status, each.mime) for each in after] == [
        (200, "text/html"),
        (404, "text/plain"),
        (404, "text/plain"),
    ]
    assert all(each.revisit for each in after)


def test_many_revisits_take_no_long() -> None:
    """Work does not grow with the square: a home page is captured every hour for years."""
    found = [
        capture(f"20100101{i // 3600:02d}{i // 60 % 60:02d}{i % 60:02d}", revisit=i % 2 == 1) for i in range(40_000)
    ]
    found = [replace(each, status=None) if each.revisit else each for each in found]
    assert all(each.status == 200 for each in resolve_revisits(found))


def test_each_payload_is_one_version() -> None:
    """The same body in two archives or at two times is fetched once; what nobody hashed is fetched."""
    found = [
        capture("2015", archive="b"),
        capture("2010"),
        capture("2012", digest="sha1:" + "B" * 32),
        capture("2011", digest=None),
        capture("2009", digest=None),
        capture("2008", digest="odd", archive="a"),
        capture("2007", digest="odd", archive="b"),
        capture("2006", digest="odd", archive="b"),
        capture("2005", status=302, digest=NOTHING, redirect="/x"),
        capture("2004", status=302, digest=NOTHING, redirect="/y"),
        capture("2003", status=302, digest=NOTHING, redirect="/y"),
    ]
    chosen = [
        each.datetime[:4] for _, each in distinct_versions(rank_captures(found, CapturePreference(), is_own, NAME))
    ]
    assert chosen == ["2015", "2012", "2011", "2009", "2008", "2007", "2005", "2004"]


@given(lists, wishes)
def test_versions_lose_no_payload(found: list[Capture], wish: CapturePreference) -> None:
    """Every capture is a version or has the body of one that comes before it."""
    order = rank_captures(found, wish, is_own, NAME)
    chosen = distinct_versions(order)
    places = [next(i for i, (_, each) in enumerate(order) if each is version) for _, version in chosen]
    assert places == sorted(places)
    for i, (_, each) in enumerate(order):
        assert any(
            each is order[place][1] or (place < i and has_same_payload(each, order[place][1])) for place in places
        )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"digest": BODY}, {"digest": BODY, "archive": "b"}, True),
        ({"digest": BODY}, {"digest": "A" * 32}, False),
        ({"digest": None}, {"digest": None}, False),
        ({"digest": "odd"}, {"digest": "odd"}, True),
        ({"digest": "odd"}, {"digest": "odd", "archive": "b"}, False),
    ],
)
def test_digests_are_compared_with_their_algorithm(one: dict[str, str], other: dict[str, str], same: bool) -> None:
    """Only what is known to be equal is equal."""
    assert has_same_payload(capture(**one), capture(**other)) is same  # type: ignore[arg-type]


def test_the_earliest_date_is_a_date() -> None:
    """A year of three digits is no trouble."""
    early = replace(capture(), datetime=dates.from_datetime(datetime(1, 1, 1, tzinfo=UTC)))
    assert rank_captures([early], CapturePreference(at="0001"), is_own, NAME) == [(CaptureQuality.GOOD, early)]
