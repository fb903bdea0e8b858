"""Builds the job service: store, folders, mail sender, retention."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from unlost.clock import Clock
from unlost.jobs.auth import AdminTokens, LinkSigner, load_secret
from unlost.jobs.database import Database
from unlost.jobs.folders import DiskSpaceLimits, JobFolders
from unlost.jobs.outbox import MailOutbox
from unlost.jobs.service import JobService, TrustedProxies
from unlost.jobs.states import RetentionPolicy
from unlost.jobs.store import JobStore
from unlost.jobs.tasks import background_task
from unlost.mail.sender import MailRenderer, MailSender
from unlost.mail.smtp import MailServer

FIRST_TOKEN_FILE = "admin-token"  # noqa: S105  the name of a file
WORK_FOLDER = "work"

# After which a thread that reads hundreds of jobs lets the event loop go on. Python's own 5 ms would be waited for at
# every step of every request.
_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, slots=True)
class JobServiceConfig:
    """What a service is told that takes orders.

    folder: of jobs. archives: ids of those that may be ordered from. root: our own address, for links in letters.
    mail: where letters are handed over; None to show their links. terms: for how long jobs are kept.
    proxies: whose word is taken for whom they ask for; none if there is no proxy. contact: whom visitors can ask.
    allows_private: whether sites of loopback and private hosts may be ordered.
    space: limits of the disk space that jobs use.
    """

    folder: Path
    database: Database
    archives: Collection[str]
    root: str
    on_message: Callable[[str], None]
    mail: MailServer | None = None
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)
    proxies: TrustedProxies = ()
    contact: str = ""
    allows_private: bool = False
    space: DiskSpaceLimits = field(default_factory=DiskSpaceLimits)


@asynccontextmanager
async def open_job_service(options: JobServiceConfig, clock: Clock) -> AsyncIterator[JobService]:
    """Yield a desk, with letters being sent and jobs being looked after meanwhile."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    keys = LinkSigner(load_secret(options.folder / "secret"))
    _create_first_token(AdminTokens(options.database), options)
    jobs = JobStore(options.database, options.retention, allows_private=options.allows_private)
    letters = MailOutbox(options.database)
    desk = JobService.create(
        jobs, JobFolders(options.folder / WORK_FOLDER), keys, letters, options.archives,
        proxies=options.proxies, sends_mail=options.mail is not None, contact=options.contact,
        space=options.space,
    )  # fmt: skip
    texts = MailRenderer(keys, options.retention, options.root)
    async with AsyncExitStack() as stack:
        stack.callback(desk.order_threads.shutdown)
        stack.callback(desk.login_pool.shutdown)
        stack.callback(desk.report_pool.shutdown)
        stack.callback(desk.watcher.close)
        await stack.enter_async_context(background_task(desk.run_retention(clock)))
        await stack.enter_async_context(background_task(desk.run_checkpoints(clock)))
        post = MailSender(letters, texts, options.mail, clock, options.on_message)
        stack.push_async_callback(asyncio.to_thread, post.close)
        await stack.enter_async_context(background_task(post.run()))
        yield desk


def _create_first_token(tokens: AdminTokens, options: JobServiceConfig) -> None:
    """Where nobody has a token yet, leave one in a file for whoever runs the service."""
    file = options.folder / FIRST_TOKEN_FILE
    if tokens.count() or file.exists():
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # of several that begin at once, another one was first
        return
    with os.fdopen(descriptor, "w") as opened:
        opened.write(tokens.create("first") + "\n")
    options.on_message(f"a token for administrators is in {file}")
