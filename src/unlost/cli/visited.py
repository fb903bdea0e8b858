"""Says what a crawl of a living site did not see."""

from unlost.cli.messages import say
from unlost.crawl.result import CrawlResult


def say_crawl_gaps(result: CrawlResult | None, hint: str) -> None:
    """Say what a crawl did not see; nothing if there was none. more: what to do about a limit that ended it."""
    if result is None:
        return
    if result.limit is not None:
        say(f"the site has more than was visited: {result.queued:,} addresses are left; {hint}", level="note")
    for reason, count in result.excluded_links.items():
        if reason == "too-far":
            continue  # which nobody wanted
        say(f"{count:,} links were not followed: {reason}", level="note")
    for host in result.suspended_hosts:
        say(f"{host}: it said to come back later, or does not answer: not all of it was seen", level="warning")
