"""Renders emails to owners as text and HTML, and sends those that are due."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import urlsplit

import jinja2

from unlost.clock import Clock
from unlost.errors import DatabaseError
from unlost.jobs.auth import LinkSigner
from unlost.jobs.limits import normalize_host
from unlost.jobs.outbox import RENEW_SECONDS, MailOutbox, PendingMail
from unlost.jobs.states import RetentionPolicy
from unlost.jobs.tables import hash_customer
from unlost.jobs.tasks import background_task
from unlost.mail.smtp import MailError, MailServer, SmtpConnectionPool
from unlost.report.format import LANGUAGES
from unlost.webui import templating
from unlost.webui.templating import load_strings

_MAX_HOST_LENGTH = 50  # characters of a host that an email shows
_POLICY = policy.SMTP.clone(max_line_length=998)  # or long URLs in headers would be encoded


def shorten_url(url: str) -> str:
    """Return a URL as an email shows it: its host, shortened. The path may be a message of the sender.

    >>> shorten_url("http://www.lost.example/call-0800?now"), shorten_url("http://lost.example/")
    ('lost.example/…', 'lost.example')
    """
    host = normalize_host(url)
    shown = host if len(host) <= _MAX_HOST_LENGTH else f"…{host[-_MAX_HOST_LENGTH:]}"
    return shown if urlsplit(url).path in ("", "/") and "?" not in url else f"{shown}/…"


class MailRenderer:
    """Writes letters. root: our own address, which links begin with."""

    def __init__(self, signer: LinkSigner, retention: RetentionPolicy, root: str) -> None:
        self._signer = signer
        self._retention = retention
        self._root = root
        self._plain = jinja2.Environment(
            loader=jinja2.FunctionLoader(templating.load_template), undefined=jinja2.StrictUndefined,
            autoescape=False, trim_blocks=True, keep_trailing_newline=True,  # noqa: S701
        )  # fmt: skip
        self._html = jinja2.Environment(
            loader=jinja2.FunctionLoader(templating.load_template), undefined=jinja2.StrictUndefined, autoescape=True
        )

    def job_link(self, mail: PendingMail) -> str:
        """Return the address that a letter leads to."""
        number, language = mail.job.number, mail.job.order.language
        chosen = "" if language == LANGUAGES[0] else f"?lang={language}"
        if mail.kind.value.startswith("confirm"):
            return f"{self._root}/jobs/confirm/{self._signer.confirmation_code(number)}{chosen}"
        return f"{self._root}/jobs/{self._signer.owner_key(number)}{chosen}"

    def unsubscribe_link(self, mail: PendingMail) -> str:
        """Return the URL by which the receiver of an email gets no more."""
        language = mail.job.order.language
        chosen = "" if language == LANGUAGES[0] else f"?lang={language}"
        return f"{self._root}/mail/stop/{self._signer.unsubscribe_code(hash_customer(mail.job.order.mail))}{chosen}"

    def render_message(self, mail: PendingMail, sender: str, now: float) -> EmailMessage:
        """Return an email that can be sent, in our own words only. The same one always has the same id."""
        job = mail.job
        link, stop = self.job_link(mail), self.unsubscribe_link(mail)
        t = load_strings(job.order.language)
        fields = {
            "t": t,
            "kind": mail.kind.value.replace("-", "_"),
            "number": job.number,
            "url": shorten_url(job.order.url),
            "is_page": job.order.page,
            "files": t("count.files", job.progress.recovered),
            "remark": job.message,
            "day": t.day(self._retention.removal_time(job)),
            "link": link,
            "stop": stop,
        }
        text = self._plain.get_template("letters/letter.txt").render(fields)
        subject, _, body = text.partition("\n")
        parts = [" ".join(part.split()) for part in body.split("\n\n") if part.strip()]
        message = EmailMessage(_POLICY)
        message["Subject"] = " ".join(subject.split())
        message["From"] = sender
        message["To"] = job.order.mail
        message["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
        message["Message-ID"] = f"<{job.number}.{mail.number}.{mail.kind}@{sender.rpartition('@')[2].strip('>')}>"
        message["List-Unsubscribe"] = f"<{stop}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"  # RFC 8058
        message["Auto-Submitted"] = "auto-generated"  # so that nobody's absence answers
        message.set_content(body)
        html = self._html.get_template("letters/letter.html").render(
            subject=subject, parts=parts, links=(link, stop), url=f"`{fields['url']}`", language=t.language
        )
        message.add_alternative(html, subtype="html")
        return message


_POLL_SECONDS = 2.0
_CONNECTIONS = 4  # to the mail server: one slow receiver does not hold up the others
_SHOWN_BATCH = 50  # letters, where nobody waits for a mail server
_RETRY_SECONDS = 10.0  # after the database was out of reach
_log = logging.getLogger(__name__)


class MailSender:
    """Sends what is due, over a few connections at once.

    server: None if there is none: then links are shown by `tell`, for whoever runs it to pass on.
    """

    def __init__(
        self,
        outbox: MailOutbox,
        renderer: MailRenderer,
        server: MailServer | None,
        clock: Clock,
        on_message: Callable[[str], None],
    ) -> None:
        self._outbox = outbox
        self._renderer = renderer
        self._server = server
        self._clock = clock
        self._on_message = on_message
        self._connections = None if server is None else SmtpConnectionPool(server)
        self._threads = ThreadPoolExecutor(_CONNECTIONS, "mail")
        self._claimed: set[int] = set()

    async def run(self) -> None:
        """Send, until cancelled."""
        async with background_task(self._renew()):
            await self._run()

    def close(self) -> None:
        """Finish what is being sent, and close all connections."""
        self._threads.shutdown(cancel_futures=True)
        if self._connections is not None:
            self._connections.close()

    async def _run(self) -> None:
        while True:
            try:
                while await asyncio.to_thread(self.send_batch):
                    pass
                await self._clock.sleep(_POLL_SECONDS)
            except DatabaseError as error:
                _log.warning("%s", error)
                await self._clock.sleep(_RETRY_SECONDS)
            except Exception:  # noqa: BLE001  whatever it is, other letters are still to be sent
                _log.exception("a fault of ours; it goes on with the next letters")
                await self._clock.sleep(_RETRY_SECONDS)

    async def _renew(self) -> None:
        """Renew the claims of what is being sent, since a mail server may take long."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await asyncio.to_thread(self._outbox.renew, frozenset(self._claimed))
            except DatabaseError as error:
                _log.warning("%s", error)

    def send_batch(self) -> bool:
        """Send the next letters that are due; return whether there were any. Raises DatabaseError."""
        if self._connections is None:
            letters = self._outbox.claim(_SHOWN_BATCH)
            for letter in letters:
                job = letter.job
                self._on_message(
                    f"{job.order.mail}, job {job.number}, {letter.kind}: {self._renderer.job_link(letter)}"
                )
            if letters:
                self._outbox.mark_sent(letters)
        else:
            letters = self._outbox.claim()
            self._claimed |= {letter.number for letter in letters}
            try:
                list(self._threads.map(self._send, letters))
            finally:
                self._claimed.clear()
        return bool(letters)

    def _send(self, mail: PendingMail) -> None:
        about = {"job": mail.job.number, "letter": mail.kind.value}
        try:
            if self._server is not None and self._connections is not None:
                self._connections.send(self._render(mail, self._server))
        except MailError as error:
            self._claimed.discard(mail.number)
            goes_on = self._outbox.record_failure(mail, str(error), is_final=error.is_final)
            what = "is tried again" if goes_on else "is given up"
            _log.warning("a letter of job %s %s: %s", mail.job.number, what, error, extra=about)
        else:
            self._outbox.mark_sent([mail])
            _log.info("a letter of job %s was sent", mail.job.number, extra=about)

    def _render(self, mail: PendingMail, server: MailServer) -> EmailMessage:
        """Return a letter as it is sent. Raises MailError for one that cannot be: others must not wait behind it."""
        try:
            return self._renderer.render_message(mail, server.sender, self._clock.now())
        except Exception as error:
            _log.exception("a letter of job %s cannot be written", mail.job.number)
            raise MailError(f"it cannot be written: {type(error).__name__}", is_final=True) from error
