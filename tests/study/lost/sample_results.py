"""Invented outcomes of recoveries whose figures are easily computed by hand."""

from study.lost.experiments import ALL_ARCHIVES
from study.lost.result import RecoveryResult

from unlost.comparison import ResourceCounts


def sample_result(
    site: str,
    policy: str = "naive",
    archives: tuple[str, ...] = ALL_ARCHIVES,
    *,
    week: int = 0,
    identical: int = 0,
    changed: int = 0,
    missing: int = 0,
    added: int = 0,
    similar: int = 0,
    held: int = 0,
    requests: int = 10,
) -> RecoveryResult:
    """Return an outcome with pages only: the first archive gave three quarters, the last one the rest."""
    counts = ResourceCounts(identical, changed, missing, added)
    back = counts.recovered
    most = back if len(archives) == 1 else back * 3 // 4
    given = {archives[-1]: back - most, archives[0]: most}
    tally = (counts.original, counts.back)
    return RecoveryResult(
        site,
        week,
        policy,
        archives,
        counts,
        similar,
        changed,
        held,
        {"HTML": tally},
        {"without ?": tally},
        {"up to 3": tally, "deeper": (0, 0)},
        given,
        dict.fromkeys(archives, requests),
    )
