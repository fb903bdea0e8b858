"""Lets the router and the log of upstream answers know what archives answered."""

from typing import cast

from unlost.aggregate.asking import UpstreamResult
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.report import ArchiveReport
from unlost.aggregate.routing import ArchiveRouter
from unlost.aggregate.upstream_log import UpstreamLog
from unlost.dates import from_epoch, to_iso
from unlost.errors import UriError
from unlost.formats import upstream
from unlost.shown.redaction import strip_userinfo
from unlost.uri import key

_LOGGED_OUTCOMES: dict[str, upstream.UpstreamOutcome] = {
    "excluded": "miss",
    "not-now": "limited",
    "incomplete": "too-large",
}


class HitRateListener:
    """A listener that teaches a router."""

    def __init__(self, router: ArchiveRouter) -> None:
        self._router = router

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Learn from one answer, as from the log."""
        self._router.learn(result.target, _logged_outcome(result.report))

    def on_result(self, result: AggregateResult) -> None:
        """Learn nothing more."""


class UpstreamLogListener:
    """A listener that writes every answer to a log."""

    def __init__(self, log: UpstreamLog) -> None:
        self._log = log

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Append one answer."""
        self._log.append(log_record(result))

    def on_result(self, result: AggregateResult) -> None:
        """Write nothing more."""


def log_record(result: UpstreamResult) -> upstream.UpstreamLogEntry:
    """Return the log record of a request to one archive, without the user name and password of the URL."""
    report = result.report
    first, last = result.mementos.first, result.mementos.last
    return upstream.UpstreamLogEntry(
        _format_time(result.time),
        report.archive,
        strip_userinfo(result.uri),
        result.endpoint,
        _logged_outcome(report),
        report.reason,
        _key_or_none(result.uri),
        mementos=report.mementos,
        first=first.datetime if first else None,
        last=last.datetime if last else None,
        duration_ms=report.duration_ms,
    )


def _logged_outcome(report: ArchiveReport) -> upstream.UpstreamOutcome:
    """Return the outcome in the words of the log.

    An archive that lists some copies has the page, whatever became of the rest. An exclusion is a miss, since it is
    none of the archive's holdings that anybody could get. A list that was cut before its first copy says neither.
    """
    if report.mementos:
        return "hit"
    return _LOGGED_OUTCOMES.get(report.outcome) or cast("upstream.UpstreamOutcome", report.outcome)


def _format_time(seconds: float) -> str:
    whole = to_iso(from_epoch(str(int(seconds))))
    return f"{whole[:-1]}.{int(seconds % 1 * 1_000):03d}Z"


def _key_or_none(uri: str) -> str | None:
    try:
        return key(uri)
    except UriError:
        return None
