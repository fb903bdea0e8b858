"""The one place that makes the parts of a service that takes orders: desk, post, and who looks after jobs."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from unlost.clock import Clock
from unlost.service.clients import Proxies
from unlost.service.going_on import going_on
from unlost.service.jobs.database import Database
from unlost.service.jobs.disk_space import SpaceLimits
from unlost.service.jobs.folders import JobFolders
from unlost.service.jobs.keys import Keys, kept_secret
from unlost.service.jobs.letters import Letters
from unlost.service.jobs.retention import Terms
from unlost.service.jobs.store import Jobs
from unlost.service.jobs.tokens import Tokens
from unlost.service.jobs_desk import Desk
from unlost.service.letter_texts import LetterTexts
from unlost.service.mail import MailServer
from unlost.service.post import Post

FIRST_TOKEN = "admin-token"  # noqa: S105  the name of a file
WORK = "work"

# After which a thread that reads hundreds of jobs lets the event loop go on. Python's own 5 ms would be waited for at
# every step of every request.
_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, slots=True)
class JobsOptions:
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
    tell: Callable[[str], None]
    mail: MailServer | None = None
    terms: Terms = field(default_factory=Terms)
    proxies: Proxies = ()
    contact: str = ""
    allows_private: bool = False
    space: SpaceLimits = field(default_factory=SpaceLimits)


@asynccontextmanager
async def opened_desk(options: JobsOptions, clock: Clock) -> AsyncIterator[Desk]:
    """Yield a desk, with letters being sent and jobs being looked after meanwhile."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    keys = Keys(kept_secret(options.folder / "secret"))
    _make_first_token(Tokens(options.database), options)
    jobs = Jobs(options.database, options.terms, allows_private=options.allows_private)
    letters = Letters(options.database)
    desk = Desk.of(
        jobs, JobFolders(options.folder / WORK), keys, letters, options.archives,
        proxies=options.proxies, sends_mail=options.mail is not None, contact=options.contact,
        space=options.space,
    )  # fmt: skip
    texts = LetterTexts(keys, options.terms, options.root)
    async with AsyncExitStack() as stack:
        stack.callback(desk.orders.shutdown)
        stack.callback(desk.logins.shutdown)
        stack.callback(desk.reports.shutdown)
        stack.callback(desk.following.close)
        await stack.enter_async_context(going_on(desk.look_after(clock)))
        await stack.enter_async_context(going_on(desk.tidy(clock)))
        post = Post(letters, texts, options.mail, clock, options.tell)
        stack.push_async_callback(asyncio.to_thread, post.close)
        await stack.enter_async_context(going_on(post.run()))
        yield desk


def _make_first_token(tokens: Tokens, options: JobsOptions) -> None:
    """Where nobody has a token yet, leave one in a file for whoever runs the service."""
    file = options.folder / FIRST_TOKEN
    if tokens.count() or file.exists():
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # of several that begin at once, another one was first
        return
    with os.fdopen(descriptor, "w") as opened:
        opened.write(tokens.make("first") + "\n")
    options.tell(f"a token for administrators is in {file}")
