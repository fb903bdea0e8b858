"""Environment of page tests: `unlost serve --jobs` as a process, archives of a small site, a real mail server."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from tests.cli.run import unlost
from tests.external.smtp_sink import PASSWORD, USER, SmtpSink, run_smtp_sink
from tests.jobs.service_process import ServiceProcess, run_service
from tests.recovery.sample_site import SiteArchives, sample_site, serve_site
from tests.recovery.site import Site
from tests.waiting import wait_until
from unlost.jobs import Database, OrderLimits, OrderRules, file_url

ADMIN, ADMIN_PASSWORD = "operator", "a long enough password"


@dataclass
class PagesEnvironment:
    """A service with archives and a mail server."""

    service: ServiceProcess
    lost: SiteArchives
    sink: SmtpSink

    def wait_for_mail(self, mail: str, about: str) -> str:
        """Wait for an email to an address with a word in its subject, and return its text."""

        def found() -> list[str]:
            return [
                each.get_body(("plain",)).get_content()  # type: ignore[union-attr]
                for each in tuple(self.sink.messages)
                if each["To"] == mail and about in each["Subject"]
            ]

        wait_until(lambda: bool(found()))
        return found()[-1]

    def link(self, mail: str, about: str = "Confirm") -> str:
        """Return the link in an email."""
        match = re.search(r"http://127\.0\.0\.1:\d+(/jobs/\S+)", self.wait_for_mail(mail, about))
        assert match is not None
        return self.service.base + match[1]


@contextmanager
def run_environment(folder: Path, site: Site | None = None, *more: str) -> Iterator[PagesEnvironment]:
    """Run the environment, with an administrator."""
    with ExitStack() as stack:
        lost = stack.enter_context(serve_site(site or sample_site()))
        sink = stack.enter_context(run_smtp_sink(folder))
        done = unlost(
            "serve", "--set-admin", ADMIN, "--jobs", str(folder / "jobs"), env={"UNLOST_ADMIN_PASSWORD": ADMIN_PASSWORD}
        )
        assert done.returncode == 0, done.stderr
        with closing(Database(file_url(folder / "jobs" / "jobs.sqlite"))) as database:
            # All tests of pages order the same site from one network.
            OrderRules(database).set_limits(OrderLimits(per_client=0, per_address=0, pending_per_network=0))
        mail = ["--smtp", f"smtp://{USER}@127.0.0.1:{sink.port}", "--mail-from", "unlost@example.org"]
        mail += ["--smtp-ca", str(sink.ca)]
        registry = lost.registry(folder)
        env = {"UNLOST_SMTP_PASSWORD": PASSWORD}
        yield PagesEnvironment(stack.enter_context(run_service(folder, registry, *mail, *more, env=env)), lost, sink)


def order(page: Page, base: str, mail: str, url: str = "lost.example") -> None:
    """Fill in and submit the order form."""
    page.goto(f"{base}/recover")
    page.get_by_label("URL of the lost website").fill(url)
    page.get_by_label("Your email address").fill(mail)
    page.get_by_role("button", name="Start recovery").click()


def log_in(page: Page, base: str, name: str, password: str) -> None:
    """Log in as an administrator."""
    page.goto(f"{base}/admin")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
