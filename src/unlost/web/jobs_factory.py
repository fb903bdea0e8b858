"""Builds the job service: store, folders, mail sender, retention."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from unlost.background_task import background_task
from unlost.clock import Clock
from unlost.jobs.auth import AdminTokens, LinkSigner, load_secret
from unlost.jobs.client_network import TrustedProxies
from unlost.jobs.database import Database
from unlost.jobs.folders import DiskSpaceLimits, JobFolders
from unlost.jobs.outbox import MailOutbox
from unlost.jobs.service import JobService
from unlost.jobs.states import RetentionPolicy
from unlost.jobs.store import JobStore
from unlost.mail.sender import MailRenderer, MailSender
from unlost.mail.smtp import MailServer

FIRST_TOKEN_FILE = "admin-token"  # noqa: S105  the name of a file
WORK_FOLDER = "work"

# Switch interval of Python threads. With Python's default of 5 ms, a thread that reads hundreds of jobs would delay
# each step of every request in the event loop.
_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, slots=True)
class JobServiceConfig:
    """Options of the job service.

    Attributes:
        folder: Folder of the secret, the first token and the jobs.
        database: The job database.
        archives: IDs of the archives that an order may name.
        root: Base URL of the service, for links in emails.
        on_message: Called with messages for the operator.
        mail: The mail server; None to report links with `on_message` instead.
        retention: When jobs are removed and reminders sent.
        proxies: Networks of reverse proxies whose `X-Forwarded-For` header is trusted.
        contact: Contact of the operator, for visitors.
        allows_private: Whether sites on loopback and private hosts may be ordered.
        space: Limits of disk space.
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
    """Open the job service, and send emails and run retention until the block ends."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    signer = LinkSigner(load_secret(options.folder / "secret"))
    _create_first_token(AdminTokens(options.database), options)
    store = JobStore(options.database, options.retention, allows_private=options.allows_private)
    outbox = MailOutbox(options.database)
    service = JobService.create(
        store, JobFolders(options.folder / WORK_FOLDER), signer, outbox, options.archives,
        proxies=options.proxies, sends_mail=options.mail is not None, contact=options.contact,
        space=options.space,
    )  # fmt: skip
    renderer = MailRenderer(signer, options.retention, options.root)
    async with AsyncExitStack() as stack:
        stack.callback(service.order_threads.shutdown)
        stack.callback(service.login_pool.shutdown)
        stack.callback(service.report_pool.shutdown)
        stack.callback(service.watcher.close)
        await stack.enter_async_context(background_task(service.run_retention(clock)))
        await stack.enter_async_context(background_task(service.run_checkpoints(clock)))
        sender = MailSender(outbox, renderer, options.mail, clock, options.on_message)
        stack.push_async_callback(asyncio.to_thread, sender.close)
        await stack.enter_async_context(background_task(sender.run()))
        yield service


def _create_first_token(tokens: AdminTokens, options: JobServiceConfig) -> None:
    """Write a token to a file for the operator, if none exists."""
    file = options.folder / FIRST_TOKEN_FILE
    if tokens.count() or file.exists():
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another process that started at the same time was first
        return
    with os.fdopen(descriptor, "w") as stream:
        stream.write(tokens.create("first") + "\n")
    options.on_message(f"a token for administrators is in {file}")
