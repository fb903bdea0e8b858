"""Human-readable reports of input that could not be read, and of links that a crawl did not follow."""

from unlost.cli.messages import say
from unlost.crawl.models import CrawlResult
from unlost.problems import Problem, Problems

PROBLEM_DESCRIPTIONS = {
    # URLs
    "bad-address": "an address that is none",
    "bad-host": "an address whose host cannot exist",
    "bad-name": "a file whose name is in another encoding than UTF-8",
    "bad-port": "an address whose port is no number up to 65535",
    "bad-uri": "an address that is none",
    "empty": "an empty address",
    "foreign-scheme": "an address of something that is no web page",
    "malformed": "an address that nobody can visit",
    "no-host": "an address without a host",
    "no-uri": "a record without an address",
    "not-surt": "a key in a form that no index has",
    "nested": "an address with session ids within session ids",
    # lines and fields
    "bad-column": "a column whose values cannot be used",
    "bad-date": "a date that is none",
    "bad-entry": "an entry that is damaged",
    "bad-field": "a value that its field cannot have",
    "bad-field-count": "a line with more or fewer fields than it should have",
    "bad-header": "a header that makes no sense",
    "bad-json": "a piece of JSON that is none",
    "bad-line": "a line that is none of such a log",
    "bad-number": "a number that is none",
    "bad-request": "a request that is none",
    "bad-row": "a line that is none of such a file",
    "bad-visit": "a visit with a value that it cannot have",
    "binary": "a line that is no text",
    "cut-line": "a line that breaks off",
    "late-header": "a header that stands below other lines",
    "missing-field": "a line without a field that it must have",
    "no-column": "a line without the column that was asked for",
    "no-number": "a line without a host and a number",
    "no-page": "a request for something that is no page",
    "no-request": "a line without a request",
    "not-replay": "a request to an archive for something else than a copy of a page",
    "too-long": "a line or an address that is too long",
    "unknown-header": "a header that nobody knows",
    # maps and profiles
    "bad-frequency": "a count that is none",
    "bad-key": "a key that no address has",
    "bad-ports": "counts by port that do not fit",
    "bad-spread": "a number of profiles that is none",
    "bad-total": "a total that is less than its lines come to",
    "bad-wildcard": "a `*` where none may stand",
    "duplicate-key": "a key that is there twice",
    "expired": "an exclusion whose time is over",
    "no-rows": "a map with nothing in it",
    "not-normal": "a key that look-ups will not find as it is written",
    "nothing-held": "a key under which nothing is held",
    "unknown-rules": "a header with rules that do not exist",
    "unsorted": "a line that belongs before the one above it",
    # compressed files
    "bad-block": "a block of a compressed index that cannot be read",
    "bad-checksum": "a compressed part that is not what its checksum says",
    "bad-gzip": "a compressed part that is damaged",
    "corrupt": "a compressed file that is damaged",
    "corrupt-gzip": "a compressed part that is damaged",
    "corrupt-member": "a compressed file whose rest is damaged",
    "corrupt-zstd": "a compressed part that is damaged",
    "cut-gzip": "a compressed copy that breaks off",
    "trailing-garbage": "a compressed file with something else behind its end",
    "truncated": "a file that breaks off",
    "truncated-gzip": "a compressed file that breaks off",
    "truncated-zstd": "a compressed file that breaks off",
    # archive files and caches
    "bad-coding": "a copy that is packed in a way that it is not",
    "bad-http": "a copy without the beginning that answers of servers have",
    "bad-member": "a file in a WACZ that cannot be read",
    "coding-too-long": "a copy that becomes too large when it is unpacked",
    "cut-coding": "a copy that breaks off",
    "damaged": "something that is damaged",
    "foreign": "a file that is of another kind",
    "garbage": "a place where a record should begin and none does",
    "header-too-long": "a record whose header is too long",
    "loop": "a list that leads back to its beginning",
    "no-length": "a record that does not say how long it is",
    "no-record": "a page whose copy is not in the archive files",
    "no-type": "a record that does not say what it is",
    "shared-member": "a record that cannot be found by itself, as others are compressed with it",
    "short-block": "a record that breaks off",
    "short-header": "a record whose header breaks off",
    "too-large": "something that is too large",
    "unreadable": "a file or copy that cannot be read",
    # responses of archives
    "bad-crawl": "a crawl whose description makes no sense",
    "bad-parameter": "a link with a property that makes no sense",
    "bad-quote": "a link with quotes that do not end",
    "bad-result": "a result of a search that makes no sense",
    "elsewhere": "a copy of a page that was not asked for",
    "fuzzy": "a copy of a page that is only similar",
    "html": "a page of HTML in the place of a list",
    "no-date": "a link without a date",
    "no-link": "something else in the place of a link",
    "no-rel": "a link that does not say what it leads to",
    "other-date": "a copy of a date that was not asked for",
    "other-digest": "a copy that is not what the list said",
    "other-host": "a copy at a host that is not the archive's",
    "other-page": "a copy of a page that was not asked for",
}


EXIT_SKIPPED_INPUT = 5
"""Exit code of a command that succeeded, but skipped some of its input."""


def format_problem(kind: str, count: int, first: Problem) -> str:
    """Return the number of problems of a kind, its description, and the first of them.

    >>> format_problem("bad-date", 3, Problem("bad-date", "a.cdx", 7, 512, "expected 14 digits, found `x`"))
    '3 times a date that is none, first: a.cdx:7 (byte 512): bad-date: expected 14 digits, found `x`'
    """
    times = "once" if count == 1 else f"{count:,} times"
    return f"{times} {PROBLEM_DESCRIPTIONS.get(kind, kind)}, first: {first}"


def say_problems(problems: Problems, about: str = "", level: str = "error", **fields: str) -> None:
    """Print the number of problems of each kind, with the first of each.

    Args:
        problems: The problems.
        about: Subject to prefix the messages with, unless it is obvious.
        level: Log level of the messages.
        fields: Additional fields of the JSON log.
    """
    for kind, count in problems.counts.items():
        line = format_problem(kind, count, problems.first[kind])
        say(f"{about}: {line}" if about else line, level=level, kind=kind, count=count, **fields)


def say_crawl_gaps(result: CrawlResult | None, hint: str) -> None:
    """Print what a crawl did not visit; nothing if it is complete. `hint`: what to do about a limit that ended it."""
    if result is None:
        return
    if result.limit is not None:
        say(f"the site has more than was visited: {result.queued:,} addresses are left; {hint}", level="note")
    for reason, count in result.excluded_links.items():
        if reason == "too-far":
            continue  # out of scope, as configured
        say(f"{count:,} links were not followed: {reason}", level="note")
    for host in result.suspended_hosts:
        say(f"{host}: it said to come back later, or does not answer: not all of it was seen", level="warning")


def repaired_keys_note(count: int) -> str:
    """Return the suffix of a message with the number of repaired key columns; empty if there are none."""
    return f", {count} keys repaired by their URLs" if count else ""
