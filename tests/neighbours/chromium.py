"""Chromium, as Debian has it: visiting the lost site, or whatever a test looks at."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.neighbours.lost_site import HOME, proxy

_QUIET = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]


def program() -> str:
    """Return where it is. Raises FileNotFoundError."""
    found = shutil.which("chromium")
    if found is None:
        raise FileNotFoundError("chromium: run `make test`, which installs it")
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Run one that finds no host but this machine."""
    with sync_playwright() as playwright:
        rules = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        running = playwright.chromium.launch(executable_path=program(), headless=True, args=[*_QUIET, rules])
        try:
            yield running
        finally:
            running.close()


def visit(profile: Path, form: str = "simple", har: Path | None = None) -> None:
    """Visit the lost site with a profile, and close the browser: everything that it caches is then in its files.

    form: of the cache: `simple`, `blockfile` or `sql`. Whatever the browser wants to reach goes to the proxy of the
    site, which refuses it. har: where to write a HAR file of the visit.
    """
    with proxy() as port, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=program(),
            headless=True,
            record_har_path=har,
            record_har_content="embed",
            args=[
                *_QUIET,
                f"--proxy-server=http://127.0.0.1:{port}",
                "--proxy-bypass-list=<-loopback>",  # also what is on this machine goes to the proxy
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--enable-features=DiskCacheBackendExperiment:backend/{form}",
            ],
        )
        try:
            context.new_page().goto(HOME, wait_until="networkidle")
        finally:
            context.close()
