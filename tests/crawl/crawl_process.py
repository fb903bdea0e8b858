"""Crawls in forked processes, which start at once and can be killed often.

Run as a module, it reads one crawl per line as JSON, and writes the process id and then the exit code.
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
from unlost.crawl import CrawlConfig, crawl


class CrawlProcesses(Commands):
    """Starts crawls one after the other."""

    def begin(self, folder: Path, url: str) -> int:
        """Start a crawl; return its process id."""
        return self.start(folder, [url])


@contextmanager
def crawl_processes() -> Iterator[CrawlProcesses]:
    """Run the process that forks crawls."""
    command = [sys.executable, "-m", "tests.crawl.crawl_process"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield CrawlProcesses(process)
        assert process.stdin
        process.stdin.close()


def main() -> None:
    """Start the crawls given on standard input."""
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
