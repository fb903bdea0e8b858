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

from unlost.background_task import background_task
from unlost.clock import Clock
from unlost.errors import DatabaseError
from unlost.jobs.auth import LinkSigner
from unlost.jobs.limits import normalize_host
from unlost.jobs.outbox import RENEW_SECONDS, MailOutbox, PendingMail
from unlost.jobs.states import RetentionPolicy
from unlost.jobs.tables import hash_customer
from unlost.mail.smtp import MailError, MailServer, SmtpConnectionPool
from unlost.report.format import LANGUAGES
from unlost.webui import templating
from unlost.webui.templating import load_strings

_MAX_HOST_LENGTH = 50  # characters of a host that are shown in an email
_POLICY = policy.SMTP.clone(max_line_length=998)  # the limit of RFC 5322, section 2.1.1; no long URL is encoded
_POLL_SECONDS = 2.0
_CONNECTIONS = 4  # parallel connections, so that one slow recipient does not delay the others
_SHOWN_BATCH = 50  # emails per batch without a mail server
_RETRY_SECONDS = 10.0  # pause after a database error
_log = logging.getLogger(__name__)


def shorten_url(url: str) -> str:
    """Return the shortened host of a URL, for display in an email.

    The path is omitted, since it may contain text that an abuser wants to send.

    >>> shorten_url("http://www.lost.example/call-0800?now"), shorten_url("http://lost.example/")
    ('lost.example/…', 'lost.example')
    """
    host = normalize_host(url)
    shown = host if len(host) <= _MAX_HOST_LENGTH else f"…{host[-_MAX_HOST_LENGTH:]}"
    return shown if urlsplit(url).path in ("", "/") and "?" not in url else f"{shown}/…"


class MailRenderer:
    """Renders emails to owners.

    Args:
        signer: Signs the links.
        retention: Determines the removal date that is shown.
        root: Base URL of the service.
    """

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
        """Return the link in an email: to confirm the order, or to the page of the job."""
        number, language = mail.job.number, mail.job.order.language
        query = "" if language == LANGUAGES[0] else f"?lang={language}"
        if mail.kind.value.startswith("confirm"):
            return f"{self._root}/jobs/confirm/{self._signer.confirmation_code(number)}{query}"
        return f"{self._root}/jobs/{self._signer.owner_key(number)}{query}"

    def unsubscribe_link(self, mail: PendingMail) -> str:
        """Return the link that unsubscribes the recipient."""
        language = mail.job.order.language
        query = "" if language == LANGUAGES[0] else f"?lang={language}"
        return f"{self._root}/mail/stop/{self._signer.unsubscribe_code(hash_customer(mail.job.order.mail))}{query}"

    def render_message(self, mail: PendingMail, sender: str, now: float) -> EmailMessage:
        """Render an email.

        It contains no free text of the customer, which could be a message to someone else. The message ID depends only
        on the job and the email, so that repeated attempts have the same ID.
        """
        job = mail.job
        job_link, unsubscribe_link = self.job_link(mail), self.unsubscribe_link(mail)
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
            "link": job_link,
            "stop": unsubscribe_link,
        }
        text = self._plain.get_template("mail/message.txt").render(fields)
        subject, _, body = text.partition("\n")
        parts = [" ".join(part.split()) for part in body.split("\n\n") if part.strip()]
        message = EmailMessage(_POLICY)
        message["Subject"] = " ".join(subject.split())
        message["From"] = sender
        message["To"] = job.order.mail
        message["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
        message["Message-ID"] = f"<{job.number}.{mail.number}.{mail.kind}@{sender.rpartition('@')[2].strip('>')}>"
        message["List-Unsubscribe"] = f"<{unsubscribe_link}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"  # RFC 8058
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: prevents out-of-office replies
        message.set_content(body)
        html = self._html.get_template("mail/message.html").render(
            subject=subject,
            parts=parts,
            links=(job_link, unsubscribe_link),
            url=f"`{fields['url']}`",
            language=t.language,
        )
        message.add_alternative(html, subtype="html")
        return message


class MailSender:
    """Sends due emails over a few parallel connections.

    Args:
        outbox: The emails to send.
        renderer: Renders them.
        server: The mail server. If None, links are passed to `on_message` instead, for the operator to forward.
        clock: Source of time.
        on_message: Called with messages for the operator.
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
        """Send emails until cancelled."""
        async with background_task(self._renew()):
            await self._run()

    def close(self) -> None:
        """Finish sending the current emails and close all connections."""
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
            except Exception:  # noqa: BLE001  any error: the other emails must still be sent
                _log.exception("a fault of ours; it goes on with the next letters")
                await self._clock.sleep(_RETRY_SECONDS)

    async def _renew(self) -> None:
        """Renew the claims of emails that are being sent, since a mail server may be slow."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await asyncio.to_thread(self._outbox.renew, frozenset(self._claimed))
            except DatabaseError as error:
                _log.warning("%s", error)

    def send_batch(self) -> bool:
        """Send the next due emails.

        Returns:
            Whether there were any.

        Raises:
            DatabaseError: The database cannot be reached.
        """
        if self._connections is None:
            mails = self._outbox.claim(_SHOWN_BATCH)
            for mail in mails:
                job = mail.job
                self._on_message(f"{job.order.mail}, job {job.number}, {mail.kind}: {self._renderer.job_link(mail)}")
            if mails:
                self._outbox.mark_sent(mails)
        else:
            mails = self._outbox.claim()
            self._claimed |= {mail.number for mail in mails}
            try:
                list(self._threads.map(self._send, mails))
            finally:
                self._claimed.clear()
        return bool(mails)

    def _send(self, mail: PendingMail) -> None:
        log_fields = {"job": mail.job.number, "letter": mail.kind.value}
        try:
            if self._server is not None and self._connections is not None:
                self._connections.send(self._render(mail, self._server))
        except MailError as error:
            self._claimed.discard(mail.number)
            is_retried = self._outbox.record_failure(mail, str(error), is_final=error.is_final)
            result = "is tried again" if is_retried else "is given up"
            _log.warning("a letter of job %s %s: %s", mail.job.number, result, error, extra=log_fields)
        else:
            self._outbox.mark_sent([mail])
            _log.info("a letter of job %s was sent", mail.job.number, extra=log_fields)

    def _render(self, mail: PendingMail, server: MailServer) -> EmailMessage:
        """Render an email. Any failure is final, so that one email does not block the others.

        Raises:
            MailError: It cannot be rendered.
        """
        try:
            return self._renderer.render_message(mail, server.sender, self._clock.now())
        except Exception as error:
            _log.exception("a letter of job %s cannot be written", mail.job.number)
            raise MailError(f"it cannot be written: {type(error).__name__}", is_final=True) from error
