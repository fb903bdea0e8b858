"""Carries questions to archives and brings answers back: the one place that opens connections to them."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha1
from typing import BinaryIO, Self
from weakref import WeakValueDictionary

from unlost.archives.archive import Archive, Kind, Work
from unlost.archives.asking.addresses import (
    Address,
    Place,
    Resolver,
    may_be_public,
    own_places,
    parse,
    target_of,
)
from unlost.archives.asking.agent import user_agent
from unlost.archives.asking.connectivity import Connectivity, ResponseOrigin
from unlost.archives.asking.exchange import Deadlines, Exchange, Head, Passage
from unlost.archives.asking.pool import Pool, open_pools
from unlost.archives.asking.question import Question, Reply
from unlost.archives.manners import admission
from unlost.archives.manners.concurrency import ConcurrencyLimiter, ConcurrencyOptions
from unlost.archives.manners.ledger import Ledger
from unlost.archives.manners.limit_store import LimitStore
from unlost.archives.manners.waiting import Patience, Turn, Turns, not_now
from unlost.clock import Clock
from unlost.errors import FailedError, NotNowError

RETRIES = 2
"""Of what it often helps to try again; more would cost the archive as much as new questions."""

_READ_OF_PAGE = 1 << 16  # bytes of a page that tell whether it is the same as another
_RETRY_SECONDS = 1.0  # before the first; four times as long before the next
_REDIRECTS = (301, 302, 303, 307, 308)
# What every archive has; captured bodies may come in other codings, and are decoded all the same.
_ACCEPTED = "gzip, deflate"
_FIELD = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_CONGESTION = {"timeout", "reset", "refused", "unreachable", "status"}  # failures that fewer requests may help against
_SECRET = {"authorization", "cookie", "proxy-authorization"}
_log = logging.getLogger(__name__)


class Courier:
    """Asks archives, with one pool of connections for all. Use it as an async context manager.

    store: the accounts by which limits are kept. Everybody who asks the same archives should share it.
    clock: what waits for limits and before trying again. Deadlines run on real time.
    contact: an address of mail or of a page, for whoever looks after an archive. Without one, half as much is asked.
    deadlines: how long an archive may take.
    patience: how many seconds, at most, one question may be kept waiting for limits and because the archive said so;
        what would take longer is a NotNowError at once.
    retries: how many times a question is sent again where that often helps, after growing pauses. With 0, as for who
        must answer soon, only what went out on a connection that turned out to be closed is, once and at once.
    connections_per_host: how many questions are on their way to one host at once, and how many connections are kept.
    concurrency: the bounds within which that adapts to how the host copes; without them it does not.
    slot_patience: how many seconds a question waits, at most, until fewer are on their way to the host; None if that
        counts as waiting for limits.
    proxies: whether to go through the proxies that the environment names (HTTP_PROXY and the like).
    tell: gets a line for people, once, if there is no contact; by default the log of this module.
    resolver: what looks names up; by default the system.
    network: records which archives can be reached; by default, a record of its own that never ends a run.
    sent: how many requests went to each archive, by kind: also those that were sent again, and to where it redirects.
        A request for which no connection could be made was not sent.
    """

    def __init__(
        self,
        store: LimitStore,
        clock: Clock,
        contact: str | None = None,
        deadlines: Deadlines | None = None,
        patience: float = 300.0,
        connections_per_host: int = 6,
        proxies: bool = False,
        retries: int = RETRIES,
        tell: Callable[[str], None] = _log.warning,
        resolver: Resolver | None = None,
        network: Connectivity | None = None,
        concurrency: ConcurrencyOptions | None = None,
        slot_patience: float | None = None,
    ) -> None:
        share = admission.SHARE if contact else admission.SHARE_WITHOUT_CONTACT
        self._clock = clock
        self._turns = Turns(store, clock, share)
        self._own_fields = f"User-Agent: {user_agent(contact)}\r\nAccept-Encoding: {_ACCEPTED}\r\n"
        self._deadlines = deadlines or Deadlines()
        self._patience = patience
        self._slot_patience = slot_patience
        self._concurrency = concurrency or ConcurrencyOptions.fixed(connections_per_host)
        self._limiters: dict[Place, ConcurrencyLimiter] = {}  # of registered hosts
        # Redirects may lead to any number of hosts: their limiters exist only while they are in use.
        self._other_limiters: WeakValueDictionary[Place, ConcurrencyLimiter] = WeakValueDictionary()
        self._proxies = proxies
        self._retries = retries
        self._tell = tell
        self._told = contact is not None
        self._resolver = resolver
        self._pools: dict[bool, Pool] = {}
        self._refusals: dict[str, _Refusal] = {}  # by archive: those of which it is not known yet what they mean
        self.network = network or Connectivity()
        self.sent: Counter[tuple[str, Work]] = Counter()

    async def __aenter__(self) -> Self:
        """Open the pools: one for registered places, one for others."""
        self._pools = open_pools(self._resolver, proxies=self._proxies)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection. A refusal that nothing contradicts becomes a short block."""
        for pool in self._pools.values():
            pool.close()
        self._pools = {}
        if not self.network.is_local_refusal():
            await self._block_refusing(is_confirmed=False)

    async def ask(self, archive: Archive, question: Question) -> Reply:
        """Return the answer, whole. Raises NotNowError, FailedError, and OfflineError as `Connectivity.check` does."""
        try:
            url = parse(question.url)
        except ValueError as error:
            raise FailedError(f"not an address to ask: {error}", archive.id, "malformed") from error
        errand = _Errand(question, url.place, Patience(self._patience, self._slot_patience), self._deadlines.total)
        seen: set[Address] = set()
        while True:
            answer = await self._answer(archive, url, errand)
            if isinstance(answer, Reply):
                return answer
            seen.add(url)
            url = _followed(answer, url, archive)
            if url in seen:
                raise FailedError(f"redirects in a circle, to {str(url)[:100]}", archive.id, "redirects")
            if len(seen) > question.redirects:
                raise FailedError(f"more than {question.redirects} redirects", archive.id, "redirects")

    async def _answer(self, archive: Archive, url: Address, errand: "_Errand") -> "Reply | str":
        """Return the answer to one request, or where it redirects to; try again where that helps."""
        tries = 0
        while True:
            try:
                answer = await self._attempt(archive, url, errand)
            except FailedError as error:
                if errand.passage is not None and errand.passage.strayed and errand.strays < self._concurrency.initial:
                    # No fault of this question, and none of the archive that needs a rest.
                    errand.strays += 1
                    continue
                pause = _pause(error, tries, errand, self._retries)
                if pause is None:
                    raise
                tries += 1
                errand.seconds -= pause
                await self._clock.sleep(pause)
            else:
                if answer is not None:
                    return answer  # else it said to wait, which the next turn does

    async def _attempt(self, archive: Archive, url: Address, errand: "_Errand") -> "Reply | str | None":
        place = url.place
        registered = own_places(archive)
        own = place in registered
        # Most archives have more ports than are registered: they redirect from http to https.
        its_host = place.host in {each.host for each in registered}
        pool = self._pools.get(own)
        if pool is None:
            raise RuntimeError("use `async with Courier(…)`")
        if not own and not may_be_public(place.host):
            self.network.check()
            raise FailedError(f"{place.host[:100]} is inside a network", archive.id, "redirects")
        limiter = self._limiter(place, own=own)
        turn = await self._permit(archive, errand, limiter, place)

        def sent() -> None:
            self.sent[archive.id, errand.question.work] += 1
            turn.sent()

        passage = errand.passage = Passage(turn.hold, sent)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            headers = self._headers(errand, url, archive)
            until = begun + errand.seconds
            to_end = errand.question.to_end
            async with Exchange(pool, url, headers, passage, self._deadlines, until, archive.id, to_end=to_end) as head:
                responded_at = loop.time()
                self._hint_at_contact()
                origin = ResponseOrigin(place.host, head.peer, url.scheme == "https")
                await self._note_response(archive, head, origin, errand, its_host=its_host)
                answer = await self._judge(archive, head, turn, its_host, errand.question)
                if answer is None:
                    limiter.throttled(begun, loop.time())
                else:
                    limiter.responded(begun, responded_at)
                return answer
        except asyncio.CancelledError:
            limiter.delayed(begun, loop.time())
            raise
        except FailedError as error:
            if error.kind in _CONGESTION:
                limiter.failed(begun, loop.time(), of_page=error.kind == "status")
            if its_host:
                await self._note_failure(archive, place, error, errand, turn)
            self.network.check()
            raise
        finally:
            turn.end()
            errand.seconds -= loop.time() - begun

    def _limiter(self, place: Place, *, own: bool) -> ConcurrencyLimiter:
        """Return what limits how many requests are on their way to a host."""
        limiters: MutableMapping[Place, ConcurrencyLimiter] = self._limiters if own else self._other_limiters
        limiter = limiters.get(place)
        if limiter is None:
            limiter = limiters[place] = ConcurrencyLimiter(self._concurrency)
        return limiter

    def _hint_at_contact(self) -> None:
        """Say once that no contact is set. Without a response from any archive, that is not what to do about it."""
        if not self._told:
            self._told = True
            self._tell("no contact is set, so archives are asked half as often: set --contact or UNLOST_CONTACT")

    async def _permit(self, archive: Archive, errand: "_Errand", slot: ConcurrencyLimiter, place: Place) -> Turn:
        """Return the permit to send a request. Raises NotNowError, also while a refusal is not explained yet."""
        refusal = self._refusals.get(archive.id)
        try:
            if refusal is not None and refusal.host == place.host and self._clock.now() < refusal.until:
                raise not_now(archive.id, refusal.until, "blocked")
            return await self._turns.take(archive, errand.question.work, slot, errand.patience)
        except NotNowError:
            self.network.skipped(archive.id)
            self.network.check()
            raise

    async def _note_failure(
        self, archive: Archive, place: Place, error: FailedError, errand: "_Errand", turn: Turn
    ) -> None:
        """Record a failed request. A refused connection is a block if the network works otherwise."""
        passage = errand.passage
        if passage is not None and not passage.is_sent and archive.quotas:
            work = errand.question.work
            await self._turns.change(archive, lambda ledger: (admission.unsent(ledger, archive, work, turn.at), None))
        self.network.failed(archive.id, place.host, error.kind)
        # An archive without limits is a server of the user's own, which refuses only while it is not running.
        if error.kind == "refused" and (archive.limits or archive.quotas):
            self._refusals[archive.id] = _Refusal(archive, place.host, self._clock.now(), turn.at)
            if self.network.proves_block(place.host, self._clock.now()):
                await self._block_refusing()

    async def _note_response(
        self, archive: Archive, head: Head, origin: ResponseOrigin, errand: "_Errand", *, its_host: bool
    ) -> None:
        """Record a response: if it is the archive's own, connections that others refused are blocks.

        Of hosts that an archive redirects to, pages say nothing: they may be those of a captive portal.
        """
        if head.status == 407 and errand.passage is not None and errand.passage.proxied:
            await head.drain()
            raise FailedError("the proxy wants a password", archive.id, "proxy")
        redirect = ""
        if head.status in _REDIRECTS and (location := head.header("location")):
            with suppress(ValueError):
                redirect = target_of(location, parse(head.url)).place.host
        media_type = (head.header("content-type") or "").lower()
        if head.header("memento-datetime") is not None:
            media_type = ""  # a capture, whatever its type
        if not its_host and (redirect or "html" in media_type):
            return
        is_proof = self.network.responded(archive.id, origin, head.status, media_type, redirect, self._clock.now())
        if is_proof and self._refusals:
            await self._block_refusing()

    async def _block_refusing(self, *, is_confirmed: bool = True) -> None:
        """Block the archives that refused a connection, as far as that is proven; without proof, for a short time."""
        for refusal in [*self._refusals.values()]:
            if is_confirmed and not self.network.proves_block(refusal.host, refusal.at):
                continue
            del self._refusals[refusal.archive.id]
            await self._turns.change(refusal.archive, partial(refusal.block, is_confirmed=is_confirmed))

    def _headers(self, errand: "_Errand", url: Address, archive: Archive) -> str:
        """Return the fields that go along, each with its line end. Raises FailedError for what no field can have."""
        lines = _lines(tuple(errand.headers(url).items()))
        if lines is None:
            raise FailedError("a field that cannot be sent", archive.id, "malformed")
        return self._own_fields + lines

    async def _judge(
        self, archive: Archive, head: Head, turn: Turn, its_host: bool, question: Question
    ) -> "Reply | str | None":
        """Return the answer, where it redirects to, or None if the archive said to wait."""
        # A capture is an answer whatever its status: 429 or 503 may be what was captured.
        is_capture = head.header("memento-datetime") is not None
        # Where an archive redirects to and is told that this is too much, it has been told, too; that another host is
        # out of order says nothing about the archive.
        throttled = head.status == 429 or (
            head.status == 503 and its_host and not _is_unreadable(archive, question, head)
        )
        if throttled and not is_capture:
            now = self._clock.now()
            wait = admission.seconds_to_wait(head.header("retry-after"), head.header("date"), now)
            await self._turns.change(archive, lambda ledger: (admission.told_to_wait(ledger, now, turn.at, wait), None))
            await head.drain()
            return None
        if head.status >= 500 and not is_capture:
            await head.drain()
            raise FailedError(f"status {head.status}", archive.id, "status")
        if its_host and turn.troubled:
            await self._turns.change(archive, lambda ledger: (admission.answered(ledger, turn.at), None))
        location = head.header("location")
        if question.redirects > 0 and head.status in _REDIRECTS and location:
            await head.drain()
            return location
        # Of a redirect that was captured the head says all: archives send captured lengths, which may be wrong.
        is_told = is_capture and head.status in _REDIRECTS and location
        if is_told:
            body, size = await head.read_if_it_comes(question.max_bytes, archive.id)
        else:
            body, size = await head.read(question.max_bytes, archive.id, _partial_store(head, question))
        if self.network.is_doubtful(archive.id):
            self.network.read_page(archive.id, sha1(body.read(_READ_OF_PAGE), usedforsecurity=False).hexdigest())
            body.seek(0)
            self.network.check()
        return Reply(head.url, head.status, head.headers, body, size)


def _partial_store(head: Head, question: Question) -> Callable[[BinaryIO, int], None] | None:
    """Return what stores a body that is not whole; None if it is of no use."""
    partly = question.partial
    if partly is None:
        return None

    def store(body: BinaryIO, size: int) -> None:
        # Of several attempts, the one that received most.
        if partly.reply is None or partly.reply.size < size:
            partly.reply = Reply(head.url, head.status, head.headers, body, size)

    return store


def _is_unreadable(archive: Archive, question: Question, head: Head) -> bool:
    """Return whether this is how pywb says that it cannot read a stored record: to wait for that would not help."""
    is_copy = archive.kind is Kind.PYWB and question.work is Work.REPLAY
    return is_copy and head.header("retry-after") is None


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A connection that an archive's host refused at a time. sent: when the request was admitted."""

    archive: Archive
    host: str
    at: float
    sent: float

    @property
    def until(self) -> float:
        """Until when the archive is not queried, as long as the refusal is not explained."""
        return self.at + admission.MINUTE

    def block(self, ledger: Ledger, *, is_confirmed: bool) -> tuple[Ledger, None]:
        """Return the account with the block."""
        return admission.refused(ledger, self.at, self.sent, is_confirmed=is_confirmed), None


@dataclass(slots=True)
class _Errand:
    """One question on its way.

    origin: where the question itself goes, before redirects.
    seconds: how many are left of its total deadline.
    strays: how many times it met what was left of an answer before it.
    """

    question: Question
    origin: Place
    patience: Patience
    seconds: float
    passage: Passage | None = None
    strays: int = 0

    def headers(self, url: Address) -> dict[str, str]:
        """Return the headers for one address: what is secret goes only where the question itself goes."""
        asked = dict(self.question.headers)
        if url.place == self.origin:
            return asked
        return {name: value for name, value in asked.items() if name.lower() not in _SECRET}


@lru_cache(maxsize=64)
def _lines(fields: tuple[tuple[str, str], ...]) -> str | None:
    """Return fields as they are sent, with one for what is accepted; None if one of them cannot be."""
    told = {"Accept": "*/*", **dict(fields)}
    if not all(map(_FIELD.fullmatch, told.values())):
        return None
    return "".join(f"{name}: {value}\r\n" for name, value in told.items())


def _followed(location: str, base: Address, archive: Archive) -> Address:
    try:
        return target_of(location, base)
    except ValueError as error:
        raise FailedError(f"a redirect to {location[:100]!r}: {error}", archive.id, "redirects") from error


def _pause(error: FailedError, tries: int, errand: _Errand, retries: int) -> float | None:
    """Return how many seconds to wait before another try; None if it would not help, or there is no time for it."""
    reused = errand.passage is not None and errand.passage.reused
    if retries == 0:
        # Servers close what was idle for long, without a word or just when something is sent.
        return 0.0 if error.kind == "reset" and reused and tries == 0 else None
    # A connection that was kept may be dead without anybody having said so. On a new one, who hangs will hang again.
    again = error.kind in {"reset", "status"} or (error.kind == "timeout" and reused and tries == 0)
    pause = _RETRY_SECONDS * 4**tries
    return pause if again and tries < retries and pause < errand.seconds else None
