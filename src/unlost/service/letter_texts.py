"""What letters to owners say: as text, and the same as HTML."""

from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import urlsplit

import jinja2

from unlost.service import page
from unlost.service.jobs.keys import LinkSigner
from unlost.service.jobs.letters import PendingMail
from unlost.service.jobs.retention import RetentionPolicy
from unlost.service.jobs.rows import hash_customer
from unlost.service.jobs.rules import normalize_host
from unlost.service.pages.catalogue import load_strings
from unlost.shown.language import LANGUAGES

_MAX_HOST_LENGTH = 50  # characters of a host that an email shows
_POLICY = policy.SMTP.clone(max_line_length=998)  # or long URLs in headers would be encoded


def shorten_url(url: str) -> str:
    """Return a URL as an email shows it: its host, shortened. The path may be a message of the sender.

    >>> shown_url("http://www.lost.example/call-0800?now"), shown_url("http://lost.example/")
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
            loader=jinja2.FunctionLoader(page.load_template), undefined=jinja2.StrictUndefined,
            autoescape=False, trim_blocks=True, keep_trailing_newline=True,  # noqa: S701
        )  # fmt: skip
        self._html = jinja2.Environment(
            loader=jinja2.FunctionLoader(page.load_template), undefined=jinja2.StrictUndefined, autoescape=True
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
