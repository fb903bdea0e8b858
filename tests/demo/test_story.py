"""The story, from the lost site to the page: what is told is what happened."""

import os
from pathlib import Path

from tests.demo.conftest import Told
from unlost.api import Recovery
from unlost.demo import DemoResource, DemoStory, SiteResponse, render_demo_page, run_story, story_json
from unlost.export import MANIFEST_NAME

BAD = ("for sale", "Page not found", "casino")


def good(resource: DemoResource) -> SiteResponse | None:
    """Return what the newest copy that is the page has; None if there is none."""
    copies = [
        copy.response for copy in resource.captures if not any(word.encode() in copy.response.body for word in BAD)
    ]
    return copies[-1] if copies else None


def test_newest_good_captures_are_recovered(story: DemoStory) -> None:
    """Byte for byte, whatever is newer and bad; what has no good copy is missing."""
    recovered = Recovery(story.recovery)
    back = {each.url for each in recovered.resources()}
    for resource in story.site.resources:
        answer = good(resource)
        assert (resource.url in back) == (answer is not None), resource.url
        if answer is not None and answer.status == 200:
            assert recovered.read(resource.url) == answer.body, resource.url


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
    """Unchanged is what came back as it last was; what had left the site before is added."""
    expected = {"identical": 0, "changed": 0, "missing": 0, "added": 0}
    for resource in story.site.resources:
        answer = good(resource)
        if resource.last is None:
            expected["added"] += answer is not None
        elif resource.last.status == 200:  # redirects are no resources of their own
            is_same = answer is not None and answer.body == resource.last.body
            expected["identical" if is_same else "changed" if answer else "missing"] += 1
    counts = story.comparison.counts
    assert {name: getattr(counts, name) for name in expected} == expected
    assert 0 < expected["missing"] < expected["identical"], "an honest story: not everything, but most"


def test_maps_save_requests_without_misses(story: DemoStory) -> None:
    """All questions are either sent or not, more than half are not, and every copy is found."""
    routed = story.routing
    assert routed.requests + routed.saved == len(story.site.archives) * len(story.site.resources)
    assert routed.saved > routed.requests
    copies = sum(len(resource.captures) for resource in story.site.resources)
    assert (routed.found, routed.found_by_all, routed.failed) == (copies, copies, 0)


def test_messages_contain_the_numbers(told: Told) -> None:
    """The requests, what came back and what was rejected are in the lines."""
    text, story = "\n".join(told.lines), told.story
    assert f"{story.routing.requests} requests sent, {story.routing.saved} not sent thanks to maps" in text
    assert f"{story.comparison.counts.back} of {story.comparison.counts.original} resources came back" in text
    assert text.count("rejected: ") == len(story.rejected)
    assert "no pywb" in text
    assert all(f"  {each.name}: " in text for each in story.holdings)


def test_export_has_no_links_to_the_lost_host(story: DemoStory) -> None:
    """Links lead to files; the original to look at is the whole of it."""
    recovered, original = story.page / "recovered", story.page / "original"
    for file in recovered.rglob("*.html"):
        assert b"greywater.example" not in file.read_bytes(), file
    names = {str(file.relative_to(original)) for file in original.rglob("*") if file.is_file()}
    assert len(names - {MANIFEST_NAME}) == story.comparison.counts.original
    assert (recovered / ".htaccess").is_file()
    assert story.recovery.with_suffix(".wacz").is_file()


def test_json_has_the_same_numbers(story: DemoStory) -> None:
    """The object has what the page shows."""
    found = story_json(story)
    assert found["archives_run_by"] == "unlost"
    assert found["routing"] == {
        "addresses": 35, "sent": story.routing.requests, "not_sent": story.routing.saved,
        "copies": 43, "copies_if_all_are_asked": 43, "failed": 0,
    }  # fmt: skip
    assert found["own_site"] == "unlost recover http://your.example/"


def test_rendering_is_deterministic(story: DemoStory, tmp_path: Path) -> None:
    """Nothing in it depends on who answered first; the user's own folders are left alone."""
    before = os.environ.get("UNLOST_HOME")
    with run_story(tmp_path, None, lambda _: None) as again:
        assert render_demo_page(again) == render_demo_page(story)
    assert os.environ.get("UNLOST_HOME") == before
