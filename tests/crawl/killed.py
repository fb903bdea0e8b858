"""Crawls in processes that are ready at once, so that they can be killed often: all of them are forks of one.

Run as a module it reads one crawl a line, as JSON, and for each writes the number of the process, then how it ended.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.archives.sampling.killable import ROOT, Commands
from unlost.crawl.engine import crawl
from unlost.crawl.models import CrawlConfig


class Crawls(Commands):
    """What starts crawls, one after the other."""

    def begin(self, folder: Path, url: str) -> int:
        """Start a crawl; return the number of its process."""
        return self.start(folder, [url])


@contextmanager
def crawls() -> Iterator[Crawls]:
    """Be ready to start crawls."""
    command = [sys.executable, "-m", "tests.crawl.killed"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Crawls(process)
        assert process.stdin
        process.stdin.close()


def main() -> None:
    """Start what standard input says."""
    for line in sys.stdin:
        folder, [url] = json.loads(line)
        process = os.fork()
        if process == 0:
            plan = CrawlConfig((url,), delay=0.0)
            result = asyncio.run(crawl(plan, Path(folder), contact="me@example.org", warc_bytes=400_000))
            os._exit(0 if result.is_done else 4)
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
