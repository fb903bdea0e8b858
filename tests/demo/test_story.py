"""Tests that the story reports what really happened."""

import os
from pathlib import Path

from tests.demo.conftest import StoryRun
from unlost.api import Recovery
from unlost.demo import DemoResource, DemoStory, SiteResponse, render_demo_page, run_story, story_json
from unlost.export import MANIFEST_NAME

BAD = ("for sale", "Page not found", "casino")


def good(resource: DemoResource) -> SiteResponse | None:
    """Return the response of the newest good capture; None if there is none."""
    captures = [
        capture.response
        for capture in resource.captures
        if not any(word.encode() in capture.response.body for word in BAD)
    ]
    return captures[-1] if captures else None


def test_newest_good_captures_are_recovered(story: DemoStory) -> None:
    """They are recovered byte for byte; resources without a good capture are missing."""
    recovered = Recovery(story.recovery)
    back = {each.url for each in recovered.resources()}
    for resource in story.site.resources:
        response = good(resource)
        assert (resource.url in back) == (response is not None), resource.url
        if response is not None and response.status == 200:
            assert recovered.read(resource.url) == response.body, resource.url


def test_missing_and_rejected_resources_are_reported(story: DemoStory) -> None:
    """Two pages and an image; a parked domain, a casino and a soft 404."""
    site = story.site.url
    assert {(each.uri.removeprefix(site), each.reason) for each in story.missing} == {
        ("guestbook.cgi?page=2", "not-held"),
        ("images/saltings.svg", "not-held"),
        ("keepers.php?id=4", "rejected"),
    }
    assert [(each.uri.removeprefix(site), each.archive, each.kind) for each in story.rejected] == [
        ("keepers.php?id=4", "world", "soft-404"),
        ("", "world", "parked"),
        ("history.html", "harbour", "hijacked"),
    ]


def test_recovery_is_compared_with_original(story: DemoStory) -> None:
    """Resources in their last state are identical; those removed earlier are added."""
    expected = {"identical": 0, "changed": 0, "missing": 0, "added": 0}
    for resource in story.site.resources:
        response = good(resource)
        if resource.last is None:
            expected["added"] += response is not None
        elif resource.last.status == 200:  # redirects are not compared
            is_same = response is not None and response.body == resource.last.body
            expected["identical" if is_same else "changed" if response else "missing"] += 1
    counts = story.comparison.counts
    assert {name: getattr(counts, name) for name in expected} == expected
    assert 0 < expected["missing"] < expected["identical"], "most resources come back, but not all"


def test_maps_save_requests_without_misses(story: DemoStory) -> None:
    """More than half of the requests are saved, and every capture is found."""
    routed = story.routing
    assert routed.requests + routed.saved == len(story.site.archives) * len(story.site.resources)
    assert routed.saved > routed.requests
    captures = sum(len(resource.captures) for resource in story.site.resources)
    assert (routed.found, routed.found_by_all, routed.failed) == (captures, captures, 0)


def test_messages_contain_the_numbers(story_run: StoryRun) -> None:
    """Requests, recovered and rejected resources are in the messages."""
    text, story = "\n".join(story_run.lines), story_run.story
    assert f"{story.routing.requests} requests sent, {story.routing.saved} saved by the maps" in text
    assert f"{story.comparison.counts.back} of {story.comparison.counts.original} resources recovered" in text
    assert text.count("rejected: ") == len(story.rejected)
    assert "no pywb" in text
    assert all(f"  {each.name}: " in text for each in story.holdings)


def test_export_has_no_links_to_the_lost_host(story: DemoStory) -> None:
    """Links lead to files, and the original site is complete."""
    recovered, original = story.page / "recovered", story.page / "original"
    for file in recovered.rglob("*.html"):
        assert b"greywater.example" not in file.read_bytes(), file
    names = {str(file.relative_to(original)) for file in original.rglob("*") if file.is_file()}
    assert len(names - {MANIFEST_NAME}) == story.comparison.counts.original
    assert (recovered / ".htaccess").is_file()
    assert story.recovery.with_suffix(".wacz").is_file()


def test_json_has_the_same_numbers(story: DemoStory) -> None:
    """The JSON object has the figures of the page."""
    found = story_json(story)
    assert found["archives_run_by"] == "unlost"
    assert found["routing"] == {
        "addresses": 35, "sent": story.routing.requests, "not_sent": story.routing.saved,
        "copies": 43, "copies_if_all_are_asked": 43, "failed": 0,
    }  # fmt: skip
    assert found["own_site"] == "unlost recover http://your.example/"


def test_rendering_is_deterministic(story: DemoStory, tmp_path: Path) -> None:
    """The page does not depend on the order of responses, and the user's folders are unchanged."""
    before = os.environ.get("UNLOST_HOME")
    with run_story(tmp_path, None, lambda _: None) as again:
        assert render_demo_page(again) == render_demo_page(story)
    assert os.environ.get("UNLOST_HOME") == before
