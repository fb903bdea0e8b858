"""Tests of ranking captures."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost import dates
from unlost.capture import Capture
from unlost.errors import DateError
from unlost.recovery import (
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
EMPTY_DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
BODY = "sha1:" + "A" * 32
is_own = RecoveryScope.of(RecoverOptions("http://lost.example/")).is_own


def capture(date: str = "20100101000000", status: int | None = 200, **more: object) -> Capture:
    """Return a capture of the page."""
    given = {"uri": PAGE, "key": "example,lost)/a/page.html", "archive": "a", "digest": BODY, "length": 100}
    return Capture(datetime=dates.pad(date), status=status, **(given | more))  # type: ignore[arg-type]


LISTED = [
    ("as captured", {"status": 200}, CaptureQuality.GOOD),
    ("declared as captured", {"status": 200, "migrated": False}, CaptureQuality.GOOD),
    ("a response of a proxy", {"status": 203}, CaptureQuality.GOOD),
    ("changed by the archive", {"status": 200, "migrated": True}, CaptureQuality.MIGRATED),
    ("no status", {"status": None}, CaptureQuality.UNKNOWN),
    ("an unresolved revisit", {"status": None, "revisit": True}, CaptureQuality.UNKNOWN),
    ("an unresolved revisit with status 304", {"status": 304, "revisit": True}, CaptureQuality.UNKNOWN),
    ("a small revisit", {"status": 200, "revisit": True, "length": 0}, CaptureQuality.GOOD),
    ("a partial response", {"status": 206}, CaptureQuality.PARTIAL),
    ("a redirect on the site", {"status": 301, "redirect": "http://lost.example/b"}, CaptureQuality.REDIRECT),
    ("a redirect without a host", {"status": 302, "redirect": "../b"}, CaptureQuality.REDIRECT),
    ("the same without a URL", {"status": 302, "redirect": "../b", "uri": ""}, CaptureQuality.REDIRECT),
    ("a redirect to an unknown target", {"status": 302, "digest": EMPTY_DIGEST}, CaptureQuality.REDIRECT),
    (
        "a redirect with an empty body",
        {"status": 302, "digest": EMPTY_DIGEST, "redirect": "/b"},
        CaptureQuality.REDIRECT,
    ),
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
    ("a server error", {"status": 503}, CaptureQuality.ERROR),
    ("an undefined status", {"status": 999}, CaptureQuality.ERROR),
    ("the digest of nothing", {"status": 200, "digest": EMPTY_DIGEST}, CaptureQuality.EMPTY),
    ("the digest of nothing, without a status", {"status": None, "digest": EMPTY_DIGEST}, CaptureQuality.EMPTY),
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


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in LISTED], ids=[row[0] for row in LISTED])
def test_listed_quality_of_index_fields(fields: dict[str, object], expected: CaptureQuality) -> None:
    """Each kind of capture is recognised by its index fields."""
    assert listed_quality(capture(**fields), is_own, NAME) is expected  # type: ignore[arg-type]


def test_redirect_to_other_letter_case_is_self_redirect_with_ignore_case() -> None:
    """With `--ignore-case`, a redirect to another letter case resolves to the page itself."""
    moved = capture(status=301, redirect="/A/Page.html")
    assert listed_quality(moved, is_own, NAME, ignore_case=True) is CaptureQuality.SELF_REDIRECT


STORED = [
    ({}, 10, None, CaptureQuality.GOOD),
    ({"status": None}, 10, None, CaptureQuality.GOOD),
    ({"migrated": True}, 10, None, CaptureQuality.MIGRATED),
    ({}, 0, None, CaptureQuality.EMPTY),
    ({}, 0, "length", CaptureQuality.NO_CONTENT),
    ({"digest": EMPTY_DIGEST}, 10, None, CaptureQuality.GOOD),
    ({}, 10, "length", CaptureQuality.PARTIAL),
    ({"status": 206}, 10, None, CaptureQuality.PARTIAL),
    ({"status": 404}, 10, "length", CaptureQuality.ERROR),
    ({"status": 302, "redirect": "/b"}, 0, None, CaptureQuality.REDIRECT),
    ({"status": 302, "redirect": "http://parked.example/"}, 0, None, CaptureQuality.OFFSITE_REDIRECT),
    ({"status": 302, "redirect": PAGE}, 10, None, CaptureQuality.SELF_REDIRECT),
    ({"status": 304}, 0, None, CaptureQuality.NO_CONTENT),
]


@pytest.mark.parametrize(("fields", "size", "truncated", "expected"), STORED)
def test_stored_quality_depends_on_body(
    fields: dict[str, object], size: int, truncated: str | None, expected: CaptureQuality
) -> None:
    """The digest of the index is irrelevant once the body is there."""
    fetched = capture(**fields)  # type: ignore[arg-type]
    assert stored_quality(fetched, is_own, NAME, size=size, truncated=truncated) is expected


moments = st.datetimes(datetime(1996, 1, 1), datetime(2024, 12, 31)).map(lambda d: d.strftime("%Y%m%d%H%M%S"))  # noqa: DTZ001
captures = st.builds(
    capture,
    moments,
    st.sampled_from([200, 200, 200, None, 206, 301, 302, 304, 404, 500, 204]),
    archive=st.sampled_from(["a", "b", "c", None]),
    digest=st.sampled_from([None, EMPTY_DIGEST, BODY, "sha1:" + "B" * 32, "sha256:" + "00" * 32, "unlabelled"]),
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
preferences = st.builds(CapturePreference, days, days, begins, ends, st.booleans(), st.booleans())
# Only captures that are certainly good or bad, so that nearly every list has both.
good = st.builds(capture, moments, archive=st.sampled_from("ab"), migrated=st.sampled_from([None, True, False]))
bad = st.one_of(
    st.builds(capture, moments, st.sampled_from([404, 410, 500, 503, 204, 301])),
    st.builds(capture, moments, digest=st.just(EMPTY_DIGEST)),
    st.builds(capture, moments, length=st.just(0)),
    st.builds(capture, moments, st.just(302), redirect=st.sampled_from(["/b", PAGE, "http://parked.example/"])),
)


def is_surely_good(each: Capture) -> bool:
    """Return whether index fields alone show that the page is intact."""
    return each.status == 200 and not each.revisit and each.digest != EMPTY_DIGEST and each.length != 0


def is_surely_bad(each: Capture) -> bool:
    """Return whether index fields alone show that the capture is not the page."""
    has_no_body = each.status in (204, 304) or each.digest == EMPTY_DIGEST or each.length == 0
    return not each.revisit and each.status is not None and (each.status >= 300 or has_no_body)


@given(st.one_of(st.lists(st.one_of(good, bad), min_size=2, max_size=5), lists), preferences)
def test_bad_capture_never_ranks_above_good_one(found: list[Capture], preference: CapturePreference) -> None:
    """Errors, redirects and empty bodies rank below good captures, whatever the dates and preferences."""
    order = [each for _, each in rank_captures(found, preference, is_own, NAME)]
    first_bad = next((i for i, each in enumerate(order) if is_surely_bad(each)), len(order))
    assert not any(is_surely_good(each) for each in order[first_bad:])


@given(lists, preferences, st.randoms(use_true_random=False))
def test_ranking_is_independent_of_input_order(
    found: list[Capture], preference: CapturePreference, random: object
) -> None:
    """Whichever archive responds first, the same capture is chosen."""
    expected = rank_captures(found, preference, is_own, NAME)
    random.shuffle(found)  # type: ignore[attr-defined]
    order = rank_captures(found, preference, is_own, NAME)
    assert order == expected


def test_captures_of_the_same_time_have_a_fixed_order() -> None:
    """The order is fixed even if the captures differ only in format."""
    both = [capture(migrated=True), capture(migrated=False)]
    preference = CapturePreference(most_recent=True)
    assert rank_captures(both, preference, is_own, NAME) == rank_captures(both[::-1], preference, is_own, NAME)


@given(lists, preferences)
def test_equal_quality_is_ordered_by_distance_in_time(found: list[Capture], preference: CapturePreference) -> None:
    """Captures of equal quality are ordered by distance to the preferred date, or latest first."""
    date = preference.page_datetime if preference.is_requisite and preference.page_datetime else preference.at
    order = rank_captures(found, preference, is_own, NAME)
    low, high = dates.pad(preference.first or "0001"), dates.pad(preference.last or "9999", round_up=True)
    assert len(order) == sum(low <= each.datetime <= high for each in found)

    def distance(each: Capture) -> float:
        if date is None:
            return -float(each.datetime)
        timestamp, *ends = map(dates.to_datetime, (each.datetime, dates.pad(date), dates.pad(date, round_up=True)))
        return 0.0 if ends[0] <= timestamp <= ends[1] else min(abs((timestamp - end).total_seconds()) for end in ends)

    for value in CaptureQuality:
        distances = [distance(each) for mine, each in order if mine is value]
        if not (preference.most_recent and value in (CaptureQuality.GOOD, CaptureQuality.MIGRATED)):
            assert distances == sorted(distances)
    if preference.most_recent:
        fine = [distance(each) for value, each in order if value in (CaptureQuality.GOOD, CaptureQuality.MIGRATED)]
        assert fine == sorted(fine)
    assert [value for value, _ in order if value > CaptureQuality.MIGRATED] == sorted(
        v for v, _ in order if v > CaptureQuality.MIGRATED
    )


def test_canonical_capture_precedes_migrated_unless_most_recent() -> None:
    """A migrated capture ranks second even if it is younger."""
    old, young = capture("2005"), capture("2015", migrated=True, digest=None)
    assert rank_captures([young, old], CapturePreference(), is_own, NAME)[0] == (CaptureQuality.GOOD, old)
    assert rank_captures([old, young], CapturePreference(most_recent=True), is_own, NAME)[0] == (
        CaptureQuality.MIGRATED,
        young,
    )


def test_requisite_is_closest_to_its_page_in_time() -> None:
    """The capture closest to the page is chosen, not the one at the preferred date or the latest."""
    sheets = [capture(year) for year in ("2004", "2009", "2015")]
    preference = CapturePreference(at="2015", page_datetime="20040501000000", is_requisite=True)
    assert rank_captures(sheets, preference, is_own, NAME)[0][1] == sheets[0]
    assert rank_captures(sheets, replace(preference, is_requisite=False), is_own, NAME)[0][1] == sheets[2]
    assert rank_captures(sheets, CapturePreference(at="2010"), is_own, NAME)[0][1] == sheets[1]
    assert rank_captures(sheets, CapturePreference(), is_own, NAME)[0][1] == sheets[2]


def test_invalid_preferred_date_is_rejected() -> None:
    """The 31st of June is rejected."""
    with pytest.raises(DateError):
        rank_captures([], CapturePreference(at="20100631"), is_own, NAME)


def test_capture_with_invalid_date_ranks_last() -> None:
    """A capture with an impossible date ranks last and raises no error."""
    broken = replace(capture(), datetime="20100231999999")
    fine = capture("1996")
    assert [each for _, each in rank_captures([broken, fine], CapturePreference(at="2015"), is_own, NAME)] == [
        fine,
        broken,
    ]


def resolve_revisits_slowly(found: list[Capture]) -> list[Capture]:
    """Return the expected result of `resolve_revisits` by comparing each revisit with all captures."""

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
def test_resolve_revisits_agrees_with_model(found: list[Capture]) -> None:
    """A revisit has status and type of the capture it names or of an equal digest, its own archive first."""
    assert resolve_revisits(found) == resolve_revisits_slowly(found)


def test_revisit_prefers_original_of_its_archive() -> None:
    """If one digest has different statuses in two archives, each revisit has the status of its archive."""
    fine, error = capture("2005", mime="text/html"), capture("2006", status=404, archive="b", mime="text/plain")
    again = [capture("2010", None, archive=archive, revisit=True) for archive in ("a", "b", "c")]
    after = resolve_revisits([*again, fine, error])[:3]
    assert [(each.status, each.mime) for each in after] == [
        (200, "text/html"),
        (404, "text/plain"),
        (404, "text/plain"),
    ]
    assert all(each.revisit for each in after)


def test_many_revisits_are_resolved_in_linear_time() -> None:
    """The time does not grow quadratically."""
    found = [
        capture(f"20100101{i // 3600:02d}{i // 60 % 60:02d}{i % 60:02d}", revisit=i % 2 == 1) for i in range(40_000)
    ]
    found = [replace(each, status=None) if each.revisit else each for each in found]
    assert all(each.status == 200 for each in resolve_revisits(found))


def test_equal_digests_are_one_version() -> None:
    """An equal body in two archives or at two times is one version; captures without a digest are distinct."""
    found = [
        capture("2015", archive="b"),
        capture("2010"),
        capture("2012", digest="sha1:" + "B" * 32),
        capture("2011", digest=None),
        capture("2009", digest=None),
        capture("2008", digest="opaque", archive="a"),
        capture("2007", digest="opaque", archive="b"),
        capture("2006", digest="opaque", archive="b"),
        capture("2005", status=302, digest=EMPTY_DIGEST, redirect="/x"),
        capture("2004", status=302, digest=EMPTY_DIGEST, redirect="/y"),
        capture("2003", status=302, digest=EMPTY_DIGEST, redirect="/y"),
    ]
    chosen = [
        each.datetime[:4] for _, each in distinct_versions(rank_captures(found, CapturePreference(), is_own, NAME))
    ]
    assert chosen == ["2015", "2012", "2011", "2009", "2008", "2007", "2005", "2004"]


@given(lists, preferences)
def test_distinct_versions_cover_all_payloads(found: list[Capture], preference: CapturePreference) -> None:
    """Every capture is a version or has the payload of an earlier one."""
    order = rank_captures(found, preference, is_own, NAME)
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
        ({"digest": "opaque"}, {"digest": "opaque"}, True),
        ({"digest": "opaque"}, {"digest": "opaque", "archive": "b"}, False),
    ],
)
def test_digests_are_compared_with_their_algorithm(one: dict[str, str], other: dict[str, str], same: bool) -> None:
    """Digests without an algorithm are equal only within one archive."""
    assert has_same_payload(capture(**one), capture(**other)) is same  # type: ignore[arg-type]


def test_year_1_is_a_valid_date() -> None:
    """The earliest date can be ranked."""
    early = replace(capture(), datetime=dates.from_datetime(datetime(1, 1, 1, tzinfo=UTC)))
    assert rank_captures([early], CapturePreference(at="0001"), is_own, NAME) == [(CaptureQuality.GOOD, early)]
