"""Speed of merging the TimeMaps of 14 archives, relative to a plain Python regex parser that only reads them."""

from bench.linkformat import ARCHIVES, MEMENTOS, make_timemaps, parse_with_regex
from bench.measure import Report, best_of
from unlost.aggregate import AggregateResult, ServiceUrls, TimeMapFormat, serialize_timemap
from unlost.memento import Mementos, read_archive_timemap
from unlost.problems import Problems

PAGE = "http://www.example.com/news/2013/story.html?id=7"
SERVICE_URLS = ServiceUrls("http://localhost:1208")
RUNS = 25  # many, since runs are short


def read_all(lists: list[bytes]) -> list[Mementos]:
    """Return the mementos of each TimeMap."""
    problems = Problems()
    return [
        read_archive_timemap(body, f"archive-{n}", f"https://web.archive-{n}.example/", problems).mementos
        for n, body in enumerate(lists)
    ]


def serialize(mementos: Mementos, form: TimeMapFormat = "link") -> bytes:
    """Return the merged TimeMap."""
    return serialize_timemap(AggregateResult(PAGE, mementos, (), (), 0.0, 0.0), SERVICE_URLS, form)


def main() -> None:
    """Measure and write the report."""
    lists = make_timemaps()
    expected = sorted((memento.datetime, memento.uri) for body in lists for memento in parse_with_regex(body))
    parts = read_all(lists)
    merged = Mementos.merge(parts)
    assert [(memento.datetime, memento.uri) for memento in merged] == expected  # noqa: S101
    assert len(parse_with_regex(serialize(merged))) == len(expected)  # noqa: S101
    report = Report("timemaps", "Many TimeMaps become one, beside a plain regex parser")
    report.line(f"{ARCHIVES} TimeMaps of {MEMENTOS:,} mementos, from bytes to bytes, on one core; best of {RUNS}.")
    report.line("")
    theirs = best_of(RUNS, lambda: [parse_with_regex(body) for body in lists])
    ours = best_of(RUNS, lambda: serialize(Mementos.merge(read_all(lists))))
    report.line("| | ms for all | µs a memento |")
    report.line("|---|---|---|")
    for name, seconds in (
        ("a regex in Python that only reads them", theirs),
        ("unlost: read, merged, written as link-format", ours),
        ("of this, reading", best_of(RUNS, lambda: read_all(lists))),
        ("merging", best_of(RUNS, lambda: Mementos.merge(parts))),
        ("writing link-format", best_of(RUNS, lambda: serialize(merged))),
        ("writing JSON instead", best_of(RUNS, lambda: serialize(merged, "json"))),
        ("writing CDXJ instead", best_of(RUNS, lambda: serialize(merged, "cdxj"))),
    ):
        report.line(f"| {name} | {seconds * 1e3:.2f} | {seconds / ARCHIVES / MEMENTOS * 1e6:.3f} |")
    report.line("")
    each, text = merged.memory_size / len(merged), sum(len(memento.uri) for memento in merged) / len(merged)
    report.line(f"In memory, all {len(merged):,} take {each:.0f} bytes each, {text:.0f} of them address.")
    report.line("")
    report.gate("times faster than a regex that only reads", theirs / ours, at_least=10)
    report.finish()


if __name__ == "__main__":
    main()
