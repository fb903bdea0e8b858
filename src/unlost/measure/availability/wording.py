"""What a check says, in sentences that need no explanation."""

from collections.abc import Mapping

from unlost.measure.availability.advice import DEEP_HOPS, DEEP_PATH, NEW_DAYS, Advice, Hindrance
from unlost.measure.availability.figures import CheckStats
from unlost.measure.availability.score import AvailabilityScore
from unlost.measure.availability.states import AvailabilityState
from unlost.measure.intervals import wilson_interval
from unlost.shown.words import format_count, format_share

STATE_TEXTS: Mapping[AvailabilityState, str] = {
    AvailabilityState.REPLICATED: "on the web and in an archive: would come back",
    AvailabilityState.VULNERABLE: "on the web only: would be lost with the site",
    AvailabilityState.ENDANGERED: "gone from the web, still in an archive",
    AvailabilityState.UNRECOVERABLE: "gone from the web, in no archive",
    AvailabilityState.UNKNOWN: "not asked for, or not answered by all archives",
}
"""What each state means."""

_VERDICT_TEXTS = {
    "soft-404": "not found, in words",
    "parked": "parked",
    "hijacked": "hijacked",
    "login-wall": "behind a log-in",
    "consent-wall": "behind something to agree to",
    "archive-error": "an error of the archive",
    "absent": "not there after all",
    "error": "an error of the site",
}

_ADVICE_TEXTS: Mapping[Hindrance | None, tuple[str, str]] = {
    Hindrance.ROBOTS: ("Let archives fetch what robots.txt forbids", "forbidden by robots.txt"),
    Hindrance.NOARCHIVE: ("Take `noarchive` out of these pages or headers", "marked noarchive"),
    Hindrance.UNLINKED: ("Link to these pages, or name them in a sitemap", "linked from no page of the site"),
    Hindrance.QUERY: ("Give these pages addresses without a query", "with a query in their address"),
    Hindrance.DEEP: (
        "Bring these pages nearer to the beginning, or name them in a sitemap",
        f"{DEEP_HOPS} links or {DEEP_PATH} path segments deep, or deeper",
    ),
    Hindrance.NEW: (
        "Keep addresses as they are: new ones need time until archives find them",
        f"new within {NEW_DAYS} days",
    ),
    None: ("Hand these addresses to archives by their own forms (--save writes the list)", "in no archive"),
}


def format_percentage(value: float) -> str:
    """Return a share with as many digits as an interval deserves.

    >>> percentage(0.6789), percentage(1.0)
    ('67.9 %', '100 %')
    """
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def check_headline(score: AvailabilityScore) -> str:
    """Return what everybody wants to know first.

    >>> headline(Score(100, 68, 32, 0, 0))
    'If the site were lost now, 68 of 100 resources would come back: 68 %.'
    >>> headline(Score(live=100, held=60, absent=10, drawn=20, hits=10))
    'If the site were lost now, about 75 % of 100 resources would come back: between 66.9 % and 83.1 %, judged by 20.'
    >>> headline(Score(live=10, held=4, absent=5, drawn=0, hits=0))[:70]
    'If the site were lost now, between 40 % and 50 % of 10 resources would'
    >>> headline(Score(0, 0, 0, 0, 0))
    'Nothing of the site is on the web.'
    """
    if not score.live:
        return "Nothing of the site is on the web."
    low, high = score.interval or (0.0, 1.0)
    if score.share is None:
        return (
            f"If the site were lost now, between {format_percentage(low)} and {format_percentage(high)} of "
            f"{format_count(score.live, 'resource')} would come back: of {score.unknown:,} nobody can tell, since not all "
            "archives answered."
        )
    if not score.unknown:
        many = (
            f"{score.held:,} of {format_count(score.live, 'resource')}"
            if score.held
            else f"none of {format_count(score.live, 'resource')}"
        )
        return f"If the site were lost now, {many} would come back: {format_share(score.share)}."
    return (
        f"If the site were lost now, about {format_share(score.share)} of {format_count(score.live, 'resource')} would come back: "
        f"between {format_percentage(low)} and {format_percentage(high)}, judged by {score.sampled:,}."
    )


def check_remarks(figures: CheckStats) -> list[str]:
    """Return the sentences that follow: about what is gone already, formats, and how old copies are."""
    found = []
    gone = figures.states[AvailabilityState.ENDANGERED], figures.states[AvailabilityState.UNRECOVERABLE]
    if any(gone):
        are = "is" if sum(gone) == 1 else "are"
        found.append(f"{sum(gone):,} more {are} not on the web any more, of which archives have {gone[0]:,}.")
    if figures.migrated:
        found.append(f"{figures.migrated:,} would come back only in another format than they have.")
    if figures.judged:
        found.append(_describe_sample(figures))
    stale = figures.stale
    if stale.known:
        text = (
            f"Copies that are older than the page, of those whose age can be told: {stale.stale:,} of {stale.known:,}"
        )
        text += f", by {stale.median:.0f} days in the middle and {stale.most:.0f} at most." if stale.stale else "."
        found.append(text)
    return found


def _describe_sample(figures: CheckStats) -> str:
    """Return what came of looking into copies."""
    bad, judged, total = figures.bad.total(), figures.judged, figures.judgeable
    text = f"Copies of {judged:,} of {format_count(total, 'page')} that archives have were looked into: "
    if bad:
        why = ", ".join(f"{_VERDICT_TEXTS.get(word, word)} {count:,}" for word, count in figures.bad.most_common())
        text += f"{bad:,} would not come back, for want of a good one ({why})"
    else:
        text += "all are good"
    low, high = wilson_interval(bad, judged, total)
    if judged >= total:
        return f"{text}."
    return f"{text}; of all, between {format_percentage(low)} and {format_percentage(high)} would not."


def describe_advice(advice: Advice) -> str:
    """Return what to do, and what it would bring.

    >>> change(Advice(Hindrance.ROBOTS, 12, 9))
    'Let archives fetch what robots.txt forbids: 12 are forbidden by robots.txt, of which 9 would be saved.'
    """
    what, why = _ADVICE_TEXTS[advice.hindrance]
    are = "is" if advice.affected == 1 else "are"
    if advice.hindrance is None:
        return f"{what}: {advice.affected:,} {are} {why}."
    return f"{what}: {advice.affected:,} {are} {why}, of which {advice.saved:,} would be saved."
