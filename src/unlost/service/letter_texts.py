"""What letters to owners say: as text, and the same as HTML."""

import re
import unicodedata
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

import jinja2

from unlost.service import page
from unlost.service.jobs.keys import Keys
from unlost.service.jobs.letters import Due
from unlost.service.jobs.retention import Terms
from unlost.service.jobs.rules import host_of
from unlost.service.pages.catalogue import strings_of
from unlost.shown.language import LANGUAGES

_MAX_WORDS, _MAX_LETTERS = 5, 50  # of a name in a greeting: more is a message
_JOINTS = re.compile("['\u2019-]")


def greeted(name: str) -> str:
    """Return the name that a letter may greet; nothing if what was typed may be more than a name.

    Whoever orders something types the name and the mail address, which may be a stranger's: a letter in our name must
    not say what they want.

    >>> greeted("Dr. Ana-María O'Neill"), greeted("Win at evil.example"), greeted("call 0800 1234"), greeted("a@b")
    ("Dr. Ana-María O'Neill", '', '', '')
    """
    plain = unicodedata.normalize("NFC", name)
    words = plain.split(" ")
    is_short = len(plain) <= _MAX_LETTERS and len(words) <= _MAX_WORDS
    return plain if is_short and all(map(_is_part_of_a_name, words)) else ""


def _is_part_of_a_name(word: str) -> bool:
    # A point only where no address goes on behind it; no digits, which are numbers to call, and nothing that mail
    # programs make a link of.
    parts = _JOINTS.split(word.removesuffix("."))
    return all(part and all(unicodedata.category(char)[0] in "LM" for char in part) for part in parts)


class LetterTexts:
    """Writes letters. root: our own address, which links begin with."""

    def __init__(self, keys: Keys, terms: Terms, root: str) -> None:
        self._keys = keys
        self._terms = terms
        self._root = root
        self._plain = jinja2.Environment(
            loader=jinja2.FunctionLoader(page.template), undefined=jinja2.StrictUndefined,
            autoescape=False, trim_blocks=True, keep_trailing_newline=True,  # noqa: S701
        )  # fmt: skip
        self._html = jinja2.Environment(
            loader=jinja2.FunctionLoader(page.template), undefined=jinja2.StrictUndefined, autoescape=True
        )

    def link(self, letter: Due) -> str:
        """Return the address that a letter leads to."""
        number, language = letter.job.number, letter.job.order.language
        chosen = "" if language == LANGUAGES[0] else f"?lang={language}"
        if letter.kind.value.startswith("confirm"):
            return f"{self._root}/jobs/confirm/{self._keys.confirmation(number)}{chosen}"
        return f"{self._root}/jobs/{self._keys.owner(number)}{chosen}"

    def message(self, letter: Due, sender: str, now: float) -> EmailMessage:
        """Return a letter that can be sent. The same one has the same id, so that nobody takes it for two."""
        job = letter.job
        link = self.link(letter)
        t = strings_of(job.order.language)
        fields = {
            "t": t,
            "kind": letter.kind.value.replace("-", "_"),
            "host": host_of(job.order.url) or t("letter.a_site"),
            "url": job.order.url,
            "is_page": job.order.page,
            "name": greeted(job.order.name),
            "files": t("count.files", job.progress.recovered),
            "remark": job.message,
            "day": t.day(self._terms.until(job)),
            "link": link,
        }
        text = self._plain.get_template("letters/letter.txt").render(fields)
        subject, _, body = text.partition("\n")
        parts = [" ".join(part.split()) for part in body.split("\n\n") if part.strip()]
        message = EmailMessage()
        message["Subject"] = " ".join(subject.split())
        message["From"] = sender
        message["To"] = job.order.mail
        message["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
        message["Message-ID"] = f"<{job.number}.{letter.number}.{letter.kind}@{sender.rpartition('@')[2].strip('>')}>"
        message["Auto-Submitted"] = "auto-generated"  # so that nobody's absence answers
        message.set_content(body)
        html = self._html.get_template("letters/letter.html").render(
            subject=subject, parts=parts, link=link, language=t.language
        )
        message.add_alternative(html, subtype="html")
        return message
