"""Choice of the fetch method by scheme and host behaviour."""

from dataclasses import replace

import pytest

from tests.refresh.harvest.site import etag_policy
from unlost.refresh import (
    FetchMethod,
    HostBehaviour,
    PageSnapshot,
    Policy,
    Visit,
    choose_fetch_method,
    parse_cell,
    project_to_indicators,
)

URI = "http://a.example/"
DAY = 86_400_000
TAGGED = PageSnapshot(Visit(URI, "sha1:A", etag='"1"', time=0), None, URI, 5_000)
MEASURED = HostBehaviour(spared=3, sent=1)


def test_page_without_snapshot_is_downloaded() -> None:
    """Also a snapshot without digest, and every page if the scheme skips nothing."""
    assert choose_fetch_method(etag_policy(), MEASURED, None, DAY) is FetchMethod.GET
    assert (
        choose_fetch_method(etag_policy(), MEASURED, replace(TAGGED, visit=Visit(URI, etag='"1"')), DAY)
        is FetchMethod.GET
    )
    assert choose_fetch_method(Policy(), MEASURED, TAGGED, DAY) is FetchMethod.GET


def test_conditional_requests_require_matching_host_behaviour() -> None:
    """Unmeasured or contradicting hosts get HEAD."""
    assert choose_fetch_method(etag_policy(), MEASURED, TAGGED, DAY) is FetchMethod.CONDITIONAL
    assert choose_fetch_method(etag_policy(), HostBehaviour(), TAGGED, DAY) is FetchMethod.HEAD
    assert choose_fetch_method(etag_policy(), replace(MEASURED, against=1), TAGGED, DAY) is FetchMethod.HEAD
    assert choose_fetch_method(etag_policy(), replace(MEASURED, needless=9), TAGGED, DAY) is FetchMethod.HEAD
    bare = replace(TAGGED, visit=Visit(URI, "sha1:A"))
    everything = Policy(cell_probabilities=dict.fromkeys(etag_policy().cell_probabilities, 0.0), skip_threshold=0.01)
    assert choose_fetch_method(everything, MEASURED, bare, DAY) is FetchMethod.HEAD, "there is nothing to send back"


def test_host_with_differing_head_uses_aborted_get() -> None:
    """GET is aborted after the headers."""
    assert (
        choose_fetch_method(etag_policy(), HostBehaviour(head_alike=5, head_unlike=1), TAGGED, DAY)
        is FetchMethod.ABORTED
    )


def test_probable_change_avoids_head() -> None:
    """An unnecessary HEAD costs more than the bytes in flight."""
    assert choose_fetch_method(etag_policy(), HostBehaviour(), TAGGED, DAY, 0.999) is FetchMethod.ABORTED
    assert choose_fetch_method(etag_policy(), HostBehaviour(), replace(TAGGED, size=None), DAY, 0.5) is FetchMethod.HEAD


def test_unreliable_host_is_downloaded_without_head() -> None:
    """Headers that would be ignored are not requested."""
    policy = replace(etag_policy(), prior_strengths=(5.0,) * len(Policy().prior_strengths))
    assert choose_fetch_method(policy, MEASURED, TAGGED, DAY) is FetchMethod.CONDITIONAL
    group = project_to_indicators(parse_cell("missing.same.missing.missing.silent"), 31)[2]
    policy.record_page("a.example", group, changed=True, times=3)
    assert choose_fetch_method(policy, MEASURED, TAGGED, DAY) is FetchMethod.GET


def test_fresh_page_is_skipped_without_request() -> None:
    """If the scheme has learned to rely on freshness alone, until it expires."""
    cacheable = replace(TAGGED, visit=replace(TAGGED.visit, cache_control="max-age=172800"))
    policy = etag_policy()
    assert choose_fetch_method(policy, HostBehaviour(), cacheable, DAY) is FetchMethod.HEAD
    believing = replace(
        policy,
        cell_probabilities={**policy.cell_probabilities, parse_cell("missing.missing.missing.missing.fresh"): 0.0},
    )
    assert choose_fetch_method(believing, HostBehaviour(), cacheable, DAY) is FetchMethod.SKIP
    assert choose_fetch_method(believing, HostBehaviour(), cacheable, 3 * DAY) is FetchMethod.HEAD


@pytest.mark.parametrize("values", [None, [], {"spared": "x", "sent": -1, "against": True, "unknown": 3}, "text"])
def test_invalid_host_behaviour_is_reset(values: object) -> None:
    """Invalid JSON values in the state count as unmeasured."""
    assert HostBehaviour.from_json(values) == HostBehaviour()


def test_host_behaviour_round_trip() -> None:
    """Serialized counts are restored."""
    measured = HostBehaviour(spared=4, sent=2, unasked=1)
    assert HostBehaviour.from_json(measured.to_json) == measured


@pytest.mark.parametrize("tag", ['"a\nX: y"', '"\x01"', '"\u20ac"', '"' + "a" * 9_000 + '"', ""])
def test_invalid_etags_are_not_sent(tag: str) -> None:
    """Only the date is sent then."""
    held = replace(TAGGED, visit=replace(TAGGED.visit, etag=tag, last_modified="yesterday"))
    assert held.validators == (("If-Modified-Since", "yesterday"),)
