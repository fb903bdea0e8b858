"""The story for programs."""

from unlost.demo.story import RECOVER_COMMAND, DemoStory
from unlost.measure.breakdown import breakdowns
from unlost.recover.report.objects import summary_json


def story_json(story: DemoStory) -> dict[str, object]:
    """Return what happened, by names; numbers are those of the page."""
    routed, counts = story.routing, story.comparison.counts
    return {
        "site": story.site.url,
        "archives_run_by": "pywb" if story.is_pywb else "unlost",
        "archives": {
            each.id: {
                "name": each.name,
                "copies": each.captures,
                "addresses": each.urls,
                "index_bytes": each.index.stat().st_size,
                "map_bytes": each.map.stat().st_size,
                "sent": routed.sent[each.id],
                "not_sent": routed.not_sent[each.id],
            }
            for each in story.holdings
        },
        "routing": {
            "addresses": routed.urls,
            "sent": routed.requests,
            "not_sent": routed.saved,
            "copies": routed.found,
            "copies_if_all_are_asked": routed.found_by_all,
            "failed": routed.failed,
        },
        "recovery": summary_json(story.stats),
        "missing": [{"uri": each.uri, "reason": each.reason} for each in story.missing],
        "rejected": [
            {"uri": each.uri, "archive": each.archive, "datetime": each.datetime, "verdict": each.kind}
            for each in story.rejected
        ],
        "comparison": {
            "original": counts.original,
            "identical": counts.identical,
            "changed": counts.changed,
            "missing": counts.missing,
            "added": counts.added,
            "share_by_type": {row.label: row.share for row in breakdowns(story.comparison)[0].rows},
        },
        "export": {"files": story.exported.files, "links": dict(story.exported.links)},
        "own_site": RECOVER_COMMAND,
    }
