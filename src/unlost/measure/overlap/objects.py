"""A measurement as JSON."""

from dataclasses import asdict

from unlost.measure.intervals import Proportion
from unlost.measure.overlap.figures import OverlapStats
from unlost.measure.overlap.standing import ArchiveOverlapStats, summarize_values


def overlap_to_json(figures: OverlapStats) -> dict[str, object]:
    """Return all numbers, as JSON has them."""
    found = figures.membership
    total = figures.mementos
    return {
        "pages": figures.size,
        "compared": found.total,
        "held": found.held,
        "unsettled": figures.unsettled,
        "without_answer": list(figures.unresponsive),
        "archives": [_archive_to_json(each, figures) for each in figures.archives],
        "sets": [{"archives": list(found.archive_ids(held)), "pages": count} for held, count in found.sets()],
        "by_number": dict(found.by_archive_count()),
        "best": [
            {"archives": list(each.archives), "pages": each.covered, "proven": each.is_proven}
            for each in figures.covers
        ],
        "fewest": [
            {
                "level": each.level,
                "archives": list(each.cover.archives),
                "pages": each.cover.covered,
                "proven": each.is_proven,
            }
            for each in figures.minimum_covers
        ],
        "best_for_mementos": [
            {"archive": archive, "so_far": so_far, "share": so_far / total}
            for archive, so_far in figures.memento_covers
        ],
        "tlds": [{"tld": tld, "pages": pages, "held": held} for tld, pages, held in figures.tlds],
        "years": {
            year: {
                "pages": figures.year_pages.get(year, 0),
                "archives": {
                    archive: {"pages": pages, "mementos": copies} for archive, (pages, copies) in each.items()
                },
            }
            for year, each in figures.years.items()
        },
    }


def _archive_to_json(each: ArchiveOverlapStats, figures: OverlapStats) -> dict[str, object]:
    found = figures.membership
    place = found.archives.index(each.archive) if each.archive in found.archives else None
    return {
        "archive": each.archive,
        "answered": each.answered,
        "held": each.hit_rate.to_json(),
        "alone": None if place is None else found.held_only_by(place),
        "mementos": each.mementos,
        "only_errors": each.only_errors,
        "excluded": each.excluded,
        "cut": each.cut_lists,
        "without_answer": {reason or "not-asked": count for reason, count in each.failed.items()},
        "days_behind": asdict(summarize_values(each.ages)),
        "copies": {
            "fetched": each.fetched,
            "missed": each.miss_rate.to_json(),
            "misses": dict(each.misses),
            "failed": dict(each.failed_fetches),
            "errors": each.error_captures,
            "types": dict(each.types),
            "bytes": asdict(summarize_values(each.sizes)),
            "truncated": Proportion(each.truncated, len(each.sizes)).to_json(),
            "noarchive": Proportion(each.noarchive, each.html).to_json(),
            "robots": dict(each.robots),
            "cache_control": Proportion(each.no_cache, len(each.sizes)).to_json(),
        },
        "live": _live_to_json(each) if figures.has_live else None,
    }


def _live_to_json(each: ArchiveOverlapStats) -> dict[str, object]:
    live = each.live
    return {
        "replicated": live.replicated,
        "endangered": live.endangered,
        "vulnerable": live.vulnerable,
        "unrecoverable": live.unrecoverable,
        "silent": live.silent,
        "absent": live.absent,
        "unseen": dict(live.unseen),
        "stale": Proportion(len(live.staleness), live.dated).to_json(),
        "staleness_days": asdict(summarize_values(live.staleness)),
        "identical": Proportion(live.identical, live.pairs).to_json(),
        "in_common": asdict(summarize_values(live.similarities)),
        "points": live.points,
        "bytes": asdict(summarize_values(live.sizes)),
        "noarchive": Proportion(live.noarchive, live.html).to_json(),
        "cache_control": Proportion(live.no_cache, live.answered).to_json(),
        "cache_control_kept": Proportion(live.no_cache_held, live.no_cache).to_json(),
    }
