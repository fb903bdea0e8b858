"""Lets the router and the log of upstream answers know what archives answered."""

from typing import cast

from unlost.aggregate.asking import Asked
from unlost.aggregate.found import Found
from unlost.aggregate.report import Report
from unlost.aggregate.routing import Router
from unlost.aggregate.upstream_log import UpstreamLog
from unlost.dates import from_epoch, to_iso
from unlost.errors import UriError
from unlost.formats import upstream
from unlost.shown.redaction import strip_userinfo
from unlost.uri import key

_LOGGED: dict[str, upstream.Outcome] = {"excluded": "miss", "not-now": "limited", "incomplete": "too-large"}


class Teaching:
    """A listener that teaches a router."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def heard(self, asked: Asked) -> None:
        """Learn from one answer, as from the log."""
        self._router.learn(asked.choice, _told(asked.report))

    def found(self, found: Found) -> None:
        """Learn nothing more."""


class Logging:
    """A listener that writes every answer to a log."""

    def __init__(self, log: UpstreamLog) -> None:
        self._log = log

    def heard(self, asked: Asked) -> None:
        """Append one answer."""
        self._log.append(answer_of(asked))

    def found(self, found: Found) -> None:
        """Write nothing more."""


def answer_of(asked: Asked) -> upstream.Answer:
    """Return the log record of a request to one archive, without the user name and password of the URL."""
    report = asked.report
    first, last = asked.mementos.first, asked.mementos.last
    return upstream.Answer(
        _time(asked.time),
        report.archive,
        strip_userinfo(asked.uri),
        asked.endpoint,
        _told(report),
        report.reason,
        _key(asked.uri),
        mementos=report.mementos,
        first=first.datetime if first else None,
        last=last.datetime if last else None,
        duration_ms=report.duration_ms,
    )


def _told(report: Report) -> upstream.Outcome:
    """Return the outcome in the words of the log.

    An archive that lists some copies has the page, whatever became of the rest. An exclusion is a miss, since it is
    none of the archive's holdings that anybody could get. A list that was cut before its first copy says neither.
    """
    if report.mementos:
        return "hit"
    return _LOGGED.get(report.outcome) or cast("upstream.Outcome", report.outcome)


def _time(seconds: float) -> str:
    whole = to_iso(from_epoch(str(int(seconds))))
    return f"{whole[:-1]}.{int(seconds % 1 * 1_000):03d}Z"


def _key(uri: str) -> str | None:
    try:
        return key(uri)
    except UriError:
        return None
