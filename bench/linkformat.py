"""Speed of reading the TimeMaps of 14 archives, relative to a plain Python regex parser, on one core."""

import re
from email.utils import parsedate_to_datetime

from bench.measure import Report, best_of
from unlost import dates
from unlost.memento import LinkFormatTimeMap, TimeMapEntry, format_timemap, read_timemap
from unlost.problems import Problems

ARCHIVES, MEMENTOS = 14, 1000

ENTRY = re.compile(r'<([^>]*)>\s*;\s*rel="([^"]*)"(?:\s*;\s*datetime="([^"]*)")?')


def make_timemaps() -> list[bytes]:
    """Return one TimeMap for each archive, in the form of real archives."""
    made = []
    for archive in range(ARCHIVES):
        stamps = [
            f"{2000 + n // 40}{n % 12 + 1:02d}{n % 28 + 1:02d}{n % 24:02d}{n % 60:02d}00" for n in range(MEMENTOS)
        ]
        base = f"https://web.archive-{archive}.example/web"
        page = "http://www.example.com/news/2013/story.html?id=7"
        mementos = tuple(TimeMapEntry(f"{base}/{stamp}/{page}", stamp) for stamp in stamps)
        made.append("".join(format_timemap(LinkFormatTimeMap(page, None, f"{base}/{page}", (), mementos))).encode())
    return made


def parse_with_regex(body: bytes) -> list[TimeMapEntry]:
    """Parse a TimeMap with a regular expression, without error tolerance."""
    found = []
    for uri, rel, date in ENTRY.findall(body.decode()):
        words = rel.split()
        if "memento" in words:
            datetime_ = parsedate_to_datetime(date)
            found.append(TimeMapEntry(uri, dates.from_datetime(datetime_), "first" in words, "last" in words))
    return found


def main() -> None:
    """Measure and write the report."""
    lists = make_timemaps()
    problems = Problems()
    assert [list(read_timemap(body, problems).mementos) for body in lists] == [parse_with_regex(body) for body in lists]  # noqa: S101
    report = Report("linkformat", "TimeMaps, beside a plain regex parser")
    report.line(f"{ARCHIVES} TimeMaps of {MEMENTOS:,} mementos, from bytes to `Memento`s; best of 9: runs are short.")
    report.line("")
    theirs = best_of(9, lambda: [parse_with_regex(body) for body in lists])
    ours = best_of(9, lambda: [read_timemap(body, problems) for body in lists])
    report.line("| | ms for all | µs a memento |")
    report.line("|---|---|---|")
    for name, seconds in (("a regex in Python", theirs), ("`unlost.memento.timemap`", ours)):
        report.line(f"| {name} | {seconds * 1e3:.1f} | {seconds / ARCHIVES / MEMENTOS * 1e6:.2f} |")
    report.line("")
    report.gate("times faster than a regex", theirs / ours, at_least=10)
    report.finish()


if __name__ == "__main__":
    main()
