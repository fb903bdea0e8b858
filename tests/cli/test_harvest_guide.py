"""The guide of harvests shows actual output: its examples are run in order on a site that changes."""

import re
import time
from pathlib import Path

from tests.cli.test_guides import assert_shown, examples, run
from tests.crawl.live_site import Page, serve_live_site
from tests.recovery.background_server import run_in_background
from unlost.refresh import read_policy

PAGES = 30
ROUNDS = 8
SAME = "downloaded and found the same"
QUICK = ["--delay", "0", "--contact", "me@example.org"]


def without_audits(printed: str) -> str:
    """Return the output as if no skip had been audited: audits depend on the time of the visit."""
    counts = {words: int(count) for count, words in re.findall(r"^(\d+) (.+)$", printed, re.MULTILINE)}
    skipped = counts["skipped, as the scheme says"]
    assert skipped >= 12, printed
    return f"{counts['changed']} changed\n{skipped + counts.get(SAME, 0)} skipped, as the scheme says\n"


def wait_for_next_second() -> None:
    """Wait until visits have a new date: dates have whole seconds, and a round takes less."""
    now = int(time.time())
    while int(time.time()) == now:
        time.sleep(0.01)


def test_harvest_guide_shows_the_output(tmp_path: Path) -> None:
    """A first harvest, a learned scheme, a harvest of changed pages, a harvest of due pages."""
    edited = 0

    def answer(path: str) -> Page | None:
        number = path.removeprefix("/")
        if not number.isdigit():
            return None
        version = (edited + int(number)) // 3  # a third of the pages changes each time
        return Page(f"<p>{version} {number}".encode() + b" word" * 4_000, 200, {"etag": f'"{version}"'})

    first, learn, again, due = examples("refresh.md")
    with run_in_background(serve_live_site(answer)) as site:
        (tmp_path / "pages.txt").write_text("".join(f"{site.url}/{number}\n" for number in range(PAGES)))
        assert_shown(first[1], run(tmp_path, [*first[0], *QUICK]))
        for _ in range(1, ROUNDS):
            edited += 1
            wait_for_next_second()
            assert run(tmp_path, [*first[0], *QUICK]) == f"10 changed\n20 {SAME}\n"
        assert_shown(learn[1], run(tmp_path, learn[0]))
        assert read_policy(tmp_path / "scheme").estimate is not None
        edited += 1
        wait_for_next_second()
        assert_shown(again[1], without_audits(run(tmp_path, [*again[0], *QUICK])))
        wait_for_next_second()
        # The number of due pages depends on the duration of the rounds; each page is visited or counted as skipped.
        counted = re.findall(
            r"^(\d+) (?:changed|not due|skipped|downloaded|new)", run(tmp_path, due[0] + QUICK), re.MULTILINE
        )
        assert sum(map(int, counted)) == PAGES
