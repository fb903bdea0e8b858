"""Chromium from Debian, for page tests and for visiting the lost site."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.external.lost_site import HOME, run_proxy

_QUIET = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]


def program() -> str:
    """Return the path of the program. Raises FileNotFoundError."""
    found = shutil.which("chromium")
    if found is None:
        raise FileNotFoundError("chromium: run `make test`, which installs it")
    return found


@contextmanager
def run_browser() -> Iterator[Browser]:
    """Run a browser that can only connect to this machine."""
    with sync_playwright() as playwright:
        rules = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        running = playwright.chromium.launch(executable_path=program(), headless=True, args=[*_QUIET, rules])
        try:
            yield running
        finally:
            running.close()


def visit(profile: Path, form: str = "simple", har: Path | None = None) -> None:
    """Visit the lost site with a profile and close the browser, so that its cache is written.

    Args:
        form: Cache backend: `simple`, `blockfile` or `sql`. All requests go to the proxy of the site.
        har: HAR file of the visit.
    """
    with run_proxy() as port, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=program(),
            headless=True,
            record_har_path=har,
            record_har_content="embed",
            args=[
                *_QUIET,
                f"--proxy-server=http://127.0.0.1:{port}",
                "--proxy-bypass-list=<-loopback>",  # requests to this machine go to the proxy, too
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--enable-features=DiskCacheBackendExperiment:backend/{form}",
            ],
        )
        try:
            context.new_page().goto(HOME, wait_until="networkidle")
        finally:
            context.close()
