"""TimeMaps, TimeGates and descriptions of mementos: from what was found to an answer (RFC 7089, MemGator)."""

import asyncio
import math
import re
from collections.abc import Callable, Iterator
from typing import cast

from unlost.aggregate.describing import description, link_header
from unlost.aggregate.forms import MEDIA_TYPES, Format
from unlost.aggregate.found import Found
from unlost.aggregate.places import Places, Span
from unlost.aggregate.rendering import PIECE_MEMENTOS, timemap, timemap_pieces
from unlost.aggregate.summary import summary_json, summary_text
from unlost.clock import Clock
from unlost.service.answers import NO_STORE, Answer, Header, etag_of, field_value, is_known, text_answer
from unlost.service.asked import Asked, Terms
from unlost.service.kept_answers import KeptAnswers

VARY: Header = (b"vary", b"accept-datetime, prefer")
"""What every answer of a TimeGate has."""

# Also where a request prefers nothing: else a cache would give that answer to one that does.
_PREFER: Header = (b"vary", b"prefer")
_RECORD = re.compile(
    r"#\d+(?:-\d+)?\Z"
)  # as `asking.address_of` names it: servers never see it, and send the whole file
_MAX_FAILED = 100  # archives named in a header

RETRY_SECONDS = 10
"""The `Retry-After` of a 503 where no rate limit and no circuit breaker says when archives admit requests again."""

_REASONS = {"not-now": "rate limited or busy", "dormant": "skipped, its circuit breaker is open"}


class Lists:
    """Makes answers of what was found.

    map_link: the Link to our own MementoMap that every answer has, or nothing. memory: bytes for rendered bodies.
    """

    def __init__(self, clock: Clock, map_link: str = "", memory: int = 1 << 24) -> None:
        self._clock = clock
        self._map_link = map_link
        self._kept = KeptAnswers(memory)
        self._answers: dict[str, Callable[[Asked, Terms, Found], Answer]] = {
            "timemap": self._timemap,
            "timegate": self._timegate,
            "memento": self._memento,
            "api": self._memento,
            "summary": self._summary,
        }

    def answer(self, asked: Asked, terms: Terms, found: Found) -> Answer:
        """Return the answer, whole."""
        return self._answers[asked.endpoint](asked, terms, found)

    def missing(self, found: Found, vary: Header = _PREFER) -> Answer:
        """Return the response where no memento was found: 404 if all routed archives answered, else 503.

        A 503 has no `X-Memento-Count`: the number is unknown.
        """
        failed = found.failures
        if not failed:
            return text_answer(404, f"No mementos of {found.uri} were found", *self.common(found, vary=vary))
        seconds = RETRY_SECONDS if found.retry_at is None else max(1, math.ceil(found.retry_at - self._clock.now()))
        reasons = ", ".join(
            f"{report.archive}: {_REASONS.get(report.outcome, report.outcome)}" for report in failed[:_MAX_FAILED]
        )
        message = (
            f"No mementos of {found.uri[:1_000]} were found, but {len(failed)} of {len(found.reports)} archives did "
            f"not answer ({reasons})"
        )
        headers = [header for header in self._lasting(found) if header[0] != b"x-memento-count"]
        return text_answer(503, message, *headers, NO_STORE, (b"retry-after", b"%d" % seconds), vary)

    def common(self, found: Found, links: str = "", vary: Header = _PREFER) -> list[Header]:
        """Return the headers of every answer that is made of what was found. links: the value of Link, if there is."""
        return [*self._lasting(found, links), *self._passing(found), vary]

    def _lasting(self, found: Found, links: str = "") -> list[Header]:
        """Return the headers that are the same for as long as what was found is kept."""
        is_counted = not found.is_selection or not len(found.mementos)  # a TimeGate does not say how many there are
        headers: list[Header] = [(b"x-memento-count", b"%d" % len(found.mementos))] if is_counted else []
        if failed := found.failures:
            named = ", ".join(f"{report.archive}={report.outcome}" for report in failed[:_MAX_FAILED])
            headers.append((b"x-archives-failed", field_value(named)))
        links = ", ".join(each for each in (links, self._map_link) if each)
        return [*headers, (b"link", field_value(links))] if links else headers

    def _passing(self, found: Found) -> list[Header]:
        """Return the headers that are of the moment."""
        seconds = math.floor(found.until - self._clock.now())
        return [(b"cache-control", b"max-age=%d" % seconds if seconds > 0 else b"no-cache")]

    def _timemap(self, asked: Asked, terms: Terms, found: Found) -> Answer:
        span = asked.span
        if not len(found.mementos) or (span and not len(found.mementos.between(*span))):
            return self.missing(found)
        form = f"{'-'.join(span)} {asked.form}" if span else asked.form
        wanted = Span(*span) if span else None
        if len(found.mementos) > PIECE_MEMENTOS:
            return self._long(form, terms, found, timemap_pieces(found, terms.places, _format(asked), wanted))
        return self._body(form, terms, found, lambda: timemap(found, terms.places, _format(asked), wanted))

    def _summary(self, asked: Asked, terms: Terms, found: Found) -> Answer:
        if not len(found.mementos):
            return self.missing(found)
        form = f"summary {asked.form}"
        if asked.form == "text":
            return self._body(form, terms, found, lambda: summary_text(found))
        return self._body(form, terms, found, lambda: summary_json(found, terms.places))

    def _memento(self, asked: Asked, terms: Terms, found: Found) -> Answer:
        place = found.closest(asked.date)
        if place is None:
            return self.missing(found)
        if not asked.form:
            return self._redirect(place, terms, found)
        form = f"{place} {asked.form}"
        return self._body(form, terms, found, lambda: description(found, place, terms.places, _format(asked)))

    def _timegate(self, asked: Asked, terms: Terms, found: Found) -> Answer:
        place = found.closest(asked.date)
        if place is None:
            return self.missing(found, VARY)
        return self._redirect(place, terms, found, VARY)

    def _redirect(self, place: int, terms: Terms, found: Found, vary: Header = _PREFER) -> Answer:
        def render() -> tuple[bytes, list[Header]]:
            target = reached(found, place, terms.places)
            links = link_header(found, place, terms.places)
            answer = text_answer(302, target, (b"location", field_value(target)), *self._lasting(found, links))
            return answer.body, answer.headers

        form = f"{place} to {found.mementos[place].datetime}" if found.is_selection else f"{place} to"
        rendered = self._kept.rendered(found, terms.wish, form, terms.places.base, render)
        return Answer(302, rendered.body, [*rendered.headers, *self._passing(found), vary])

    def _long(self, form: str, terms: Terms, found: Found, pieces: Iterator[bytes]) -> Answer:
        """Return a TimeMap that is rendered while it is sent."""
        etag = b"W/" + etag_of(f"{found.digest} {form} {terms.places.base}".encode())
        headers = [*self._lasting(found), *self._passing(found), _PREFER, (b"etag", etag)]
        if terms.if_none_match is not None and is_known(etag, terms.if_none_match):
            return Answer(304, b"", headers)
        headers.append((b"content-type", _TYPES[form.rpartition(" ")[2]]))
        return Answer(200, b"", headers, pieces)

    def _body(self, form: str, terms: Terms, found: Found, render: Callable[[], bytes]) -> Answer:
        def whole() -> tuple[bytes, list[Header]]:
            return render(), self._lasting(found)

        rendered = self._kept.rendered(found, terms.wish, form, terms.places.base, whole)
        headers = [*rendered.headers, *self._passing(found), _PREFER, (b"etag", rendered.etag)]
        if terms.if_none_match is not None and is_known(rendered.etag, terms.if_none_match):
            return Answer(304, b"", headers)
        headers.append((b"content-type", _TYPES[form.rpartition(" ")[2]]))
        return Answer(200, rendered.body, headers)


async def compute_digest(found: Found) -> None:
    """Compute the digest of what was found, which every response needs, in a thread if that takes long.

    That of a million mementos takes a tenth of a second, for which other requests would wait.
    """
    if len(found.mementos) > PIECE_MEMENTOS:
        await asyncio.to_thread(getattr, found, "digest")


def is_of_the_web(address: str) -> bool:
    """Return whether a browser sees a copy at its address: not if it is a record in a file, or something else."""
    return address[:8].lower().startswith(("http://", "https://")) and not _RECORD.search(address)


def reached(found: Found, place: int, places: Places) -> str:
    """Return where a browser sees a copy: at its own address, but through us if that is a record in a file."""
    memento = found.mementos[place]
    if is_of_the_web(memento.uri):
        return memento.uri
    return places.memento(memento.datetime, found.uri, "proxy")


_TYPES: dict[str, bytes] = {form: media_type.encode() for form, media_type in MEDIA_TYPES.items()}


def _format(asked: Asked) -> Format:
    return cast("Format", asked.form)  # which was checked when it was read
