"""Passes a stored copy on: as it was captured, shut in, and with nothing of the archive's own connection."""

import math
import re
from os import SEEK_END

from unlost import dates
from unlost.aggregate.describing import link_header
from unlost.aggregate.found import Found
from unlost.archives.repository import StoredCopy
from unlost.clock import Clock
from unlost.errors import ArchiveError, ExcludedError, FailedError, InputError, NotNowError
from unlost.service.answers import COMMON, NO_STORE, Answer, Header, Send, deliver, field_value, text_answer
from unlost.service.asked import Asked, Terms
from unlost.service.copies import Copies
from unlost.service.lists import Lists

_PIECE = 1 << 16
# No scripts, no origin, no forms, and nothing from the live web: what an old page refers to is ours or does not come.
_POLICY = (
    "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self' data:; font-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; form-action 'none'; base-uri 'none'"
)
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(?:\s*;[ -~]*)?", re.IGNORECASE)


class Proxy:
    """Answers with the copy itself."""

    def __init__(self, copies: Copies, lists: Lists, clock: Clock) -> None:
        self._copies = copies
        self._lists = lists
        self._clock = clock

    async def serve(self, asked: Asked, terms: Terms, found: Found, method: str, send: Send) -> int:
        """Send the copy that is closest to the date; return the status."""
        place = found.closest(asked.date)
        if place is None:
            return await _sent(self._lists.missing(found), method, send)
        memento = found.mementos[place]
        try:
            async with self._copies.fetched(found.uri, memento) as copy:
                if copy is None:
                    answer = text_answer(502, f"{memento.archive} lists a copy that it does not have")
                    return await _sent(answer, method, send)
                return await self._pass_on(copy, place, terms, found, method, send)
        except (ArchiveError, InputError) as error:
            return await _sent(self._failure(error), method, send)

    async def _pass_on(self, copy: StoredCopy, place: int, terms: Terms, found: Found, method: str, send: Send) -> int:
        headers = self._lists.common(found, link_header(found, place, terms.places))
        headers += [
            (b"memento-datetime", dates.to_http(copy.capture.datetime).encode()),
            (b"content-security-policy", _POLICY.encode()),
            (b"referrer-policy", b"no-referrer"),
        ]
        return await _stream(copy, _status(copy), [*headers, *_about(copy, terms)], method, send)

    def _failure(self, error: ArchiveError | InputError) -> Answer:
        """Return what to say where an archive does not give its copy."""
        name = error.archive if isinstance(error, ArchiveError) else "the archive"
        reason = error if isinstance(error, ArchiveError) else "its file cannot be read"  # the message has its path
        message = f"{name} does not give its copy: {reason}"
        match error:
            case NotNowError():
                wait = max(1, math.ceil(error.until - self._clock.now()))
                return text_answer(503, message, NO_STORE, (b"retry-after", b"%d" % wait))
            case ExcludedError():
                return text_answer(451, message, NO_STORE)
            case FailedError() if error.kind == "timeout":
                return text_answer(504, message, NO_STORE)
            case _:
                return text_answer(502, message, NO_STORE)


def _status(copy: StoredCopy) -> int:
    """Return the captured status, as far as it can be said again: a redirect leads on here, others are contents."""
    status = copy.capture.status
    if copy.capture.redirect is not None:
        return 302
    return status if status is not None and (status == 200 or 400 <= status <= 599) else 200


def _about(copy: StoredCopy, terms: Terms) -> list[Header]:
    """Return what of the original's own headers is passed on: what it is, and where a redirect led."""
    found: list[Header] = []
    kind = copy.header("content-type") or ""
    found.append((b"content-type", field_value(kind) if _MEDIA_TYPE.fullmatch(kind) else b"application/octet-stream"))
    if copy.capture.redirect is not None:
        target = terms.places.memento(copy.capture.datetime, copy.capture.redirect, "proxy")
        found.append((b"location", field_value(target)))
    return found


async def _stream(copy: StoredCopy, status: int, headers: list[Header], method: str, send: Send) -> int:
    size = copy.body.seek(0, SEEK_END)
    copy.body.seek(0)
    headers = [*COMMON, *headers, (b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    while method != "HEAD" and (piece := copy.body.read(_PIECE)):
        # Each waits until the client has taken enough of those before it.
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return status


async def _sent(answer: Answer, method: str, send: Send) -> int:
    await deliver(answer, method, send)
    return answer.status
