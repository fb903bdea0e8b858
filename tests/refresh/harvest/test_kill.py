"""A harvest killed at any moment loses nothing and can be resumed."""

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archives.sampling.killable import Commands, commands
from tests.crawl.live_site import LiveSite, Page
from tests.crawl.test_kill import serve_counted
from tests.process_killer import RequestKiller
from tests.recovery.recovery_output import _members
from tests.refresh.harvest.site import kinds, log, records

ROUNDS = 10
KILLS = (3, 2)  # in the first harvest, and in the next: fifty in all
PAGES = 60  # more than all killed runs of a round can visit: one that was done would begin the next


@pytest.fixture(scope="module")
def killer() -> RequestKiller:
    """Return a process killer."""
    return RequestKiller()


@pytest.fixture(scope="module")
def site(killer: RequestKiller) -> Iterator[LiveSite]:
    """Run a site with counted requests."""
    noise = random.Random(7)  # noqa: S311
    pages = {
        f"/{number}": Page(noise.randbytes(150_000 if number % 9 == 0 else 9_000), 200, {"etag": f'"{number}"'})
        for number in range(PAGES)
    }
    with serve_counted(pages, killer) as found:
        yield found


@pytest.fixture(scope="module")
def harvest_starter() -> Iterator[Commands]:
    """Run the process that forks harvests."""
    with commands("unlost.cli.harvest") as ready:
        yield ready


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_run_resumes_after_a_kill_at_any_point(
    round_: int, site: LiveSite, harvest_starter: Commands, killer: RequestKiller, tmp_path: Path
) -> None:
    """Each page is stored and logged once per round; unchanged pages of the second round are revisits."""
    random_ = random.Random(round_)  # noqa: S311
    folder = tmp_path / "harvest"
    urls = [f"{site.url}/{number}" for number in range(PAGES)]
    arguments = ["harvest", *urls, "-o", str(folder), "--delay", "0", "--contact", "me@example.org"]
    for turn, kills in enumerate(KILLS):
        for point in range(kills):
            after = random_.randint(1, 3)
            delay = random_.choice([None, random_.uniform(0, 0.004), random_.uniform(0, 0.012)])
            print(f"round {round_}.{turn}, point {point}: request {after}, {delay} s later")
            killer.plan(after, delay)
            killer.set_process(harvest_starter.start(tmp_path, arguments))
            code = harvest_starter.ended()
            killer.finish()
            if code == 0 and point:
                break  # on a busy machine a kill may come so late that all is done before it, or before the next
            assert code == -signal.SIGKILL
            for path in sorted((folder / "warc").glob("*.gz")):  # those that are not open are whole
                assert all(text is not None for _, text in _members(path.read_bytes()))
        else:
            harvest_starter.start(tmp_path, arguments)
            assert harvest_starter.ended() == 0
    found = records(folder)
    assert sorted(record.uri for record in found if record.type == "response") == sorted(urls)
    assert sorted(record.uri for record in found if record.type == "revisit") == sorted(urls)
    assert kinds(found).count("identical-payload-digest") == PAGES
    lines = log(folder)
    assert sorted((line["uri"], line["outcome"]) for line in lines) == sorted(
        (url, outcome) for url in urls for outcome in ("new", "unchanged")
    )
    assert not list((folder / "warc").glob("*.open"))
