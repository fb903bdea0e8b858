"""Aggregate results for serializers."""

from collections.abc import Iterable

from unlost.aggregate import AggregateResult, ArchiveReport, ServiceUrls
from unlost.memento import Mementos, MementoTuple

SERVICE_URLS = ServiceUrls("http://localhost:1208")


def result_of(rows: Iterable[tuple[str, str, str]], uri: str = "http://example.com/") -> AggregateResult:
    """Return a result with these mementos and no reports."""
    return AggregateResult(uri, Mementos(MementoTuple(*row) for row in rows), (), (), 0.0, 0.0)


EXAMPLE = AggregateResult(
    "http://example.com/news,2014?id=7&x=%2F",
    Mementos([
        MementoTuple("20151231235959", "ia", "http://web.archive.org/web/20151231235959/http://example.com/news,2014?id=7"),
        MementoTuple("20000229120000", "pt", "https://arquivo.pt/wayback/20000229120000/http://example.com/a b\\c"),
        MementoTuple("19960101040926", "ia", "http://web.archive.org/web/19960101040926/http://example.com/news,2014?id=7"),
    ]),
    (
        ArchiveReport("ia", "routed", "hit", 2, 120.5),
        ArchiveReport("uk", "explored", "timeout", 0, 10_000.0, "no answer within 10 s"),
    ),
    ("is", "lac"),
    0.0,
    0.0,
)  # fmt: skip
"""Two archives with the page, one that timed out, two that were passed over."""
