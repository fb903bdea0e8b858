"""A measurement as JSON."""

from dataclasses import asdict

from unlost.measure.intervals import Share
from unlost.measure.overlap.figures import Figures
from unlost.measure.overlap.standing import Standing, spread


def overlap_object(figures: Figures) -> dict[str, object]:
    """Return all numbers, as JSON has them."""
    found = figures.membership
    total = figures.mementos
    return {
        "pages": figures.size,
        "compared": found.total,
        "held": found.held,
        "unsettled": figures.unsettled,
        "without_answer": list(figures.left_out),
        "archives": [_archive(each, figures) for each in figures.archives],
        "sets": [{"archives": list(found.names(held)), "pages": count} for held, count in found.sets()],
        "by_number": dict(found.by_number()),
        "best": [
            {"archives": list(each.archives), "pages": each.covered, "proven": each.is_best} for each in figures.choices
        ],
        "fewest": [
            {
                "level": each.level,
                "archives": list(each.choice.archives),
                "pages": each.choice.covered,
                "proven": each.is_fewest,
            }
            for each in figures.fewest
        ],
        "best_for_mementos": [
            {"archive": archive, "so_far": so_far, "share": so_far / total}
            for archive, so_far in figures.memento_choices
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


def _archive(each: Standing, figures: Figures) -> dict[str, object]:
    found = figures.membership
    place = found.archives.index(each.archive) if each.archive in found.archives else None
    return {
        "archive": each.archive,
        "answered": each.asked,
        "held": each.hit_rate.members(),
        "alone": None if place is None else found.alone(place),
        "mementos": each.mementos,
        "only_errors": each.only_bad,
        "excluded": each.excluded,
        "cut": each.cut,
        "without_answer": {reason or "not-asked": count for reason, count in each.failed.items()},
        "days_behind": asdict(spread(each.ages)),
        "copies": {
            "fetched": each.fetched,
            "missed": each.miss_rate.members(),
            "misses": dict(each.misses),
            "failed": dict(each.failed_fetches),
            "errors": each.bad,
            "types": dict(each.types),
            "bytes": asdict(spread(each.sizes)),
            "truncated": Share(each.truncated, len(each.sizes)).members(),
            "noarchive": Share(each.noarchive, each.html).members(),
            "robots": dict(each.robots),
            "cache_control": Share(each.refusing, len(each.sizes)).members(),
        },
        "live": _live(each) if figures.has_live else None,
    }


def _live(each: Standing) -> dict[str, object]:
    live = each.live
    return {
        "replicated": live.replicated,
        "endangered": live.endangered,
        "vulnerable": live.vulnerable,
        "unrecoverable": live.unrecoverable,
        "silent": live.silent,
        "absent": live.absent,
        "unseen": dict(live.unseen),
        "stale": Share(len(live.staleness), live.dated).members(),
        "staleness_days": asdict(spread(live.staleness)),
        "identical": Share(live.identical, live.pairs).members(),
        "in_common": asdict(spread(live.alike)),
        "points": live.points,
        "bytes": asdict(spread(live.sizes)),
        "noarchive": Share(live.noarchive, live.html).members(),
        "cache_control": Share(live.refusing, live.answered).members(),
        "cache_control_kept": Share(live.refusing_held, live.refusing).members(),
    }
