"""Visits one page: asks for it as was chosen, decides, measures its host, audits, and says what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from unlost.crawl.polite import PoliteVisitor
from unlost.errors import SiteError
from unlost.refresh.harvest.asking import Question, Reply, ask, visit_of
from unlost.refresh.harvest.choice import Way
from unlost.refresh.harvest.held import Held, updated
from unlost.refresh.harvest.treatment import Treatment
from unlost.refresh.policy import Decision, Policy
from unlost.refresh.visit import Visit

_PLAIN = (("Cache-Control", "no-cache"), ("Pragma", "no-cache"))  # for a server that says 304 unasked
_NO_HEAD = frozenset({400, 403, 404, 405, 406, 501})  # what servers without HEAD answer to it
_COMPARED = ("etag", "last_modified")


@dataclass(slots=True)
class Found:
    """What came of asking for a page.

    outcome: `skipped`, `not-modified`, `answered`. reply: the last one; None where nothing was asked.
    decision: what the scheme said; None where nothing was held, or no headers came.
    visit: what the log gets, without digests. treatment: of the host, with what was measured.
    weight: how many skips an audit stands for; None if it was none.
    """

    outcome: str
    visit: Visit
    treatment: Treatment
    reply: Reply | None = None
    decision: Decision | None = None
    weight: int | None = None
    had_304: bool = False

    def close(self) -> None:
        """Let go of what came."""
        if self.reply is not None:
            self.reply.close()


class PageVisitor:
    """Visits pages by a policy.

    now: gives milliseconds since 1970. max_bytes: of one body that are read.
    """

    def __init__(self, polite: PoliteVisitor, policy: Policy, now: Callable[[], int], max_bytes: int) -> None:
        self._polite, self._policy, self._now, self._max_bytes = polite, policy, now, max_bytes

    async def visit(self, uri: str, host: str, held: Held | None, treatment: Treatment, way: Way) -> Found:
        """Return what came of it, whose `close` the caller calls. Raises SiteError and its kinds."""
        if way is Way.SKIP:
            return Found("skipped", Visit(uri, time=self._now(), status=0), treatment)
        visiting = _Visiting(self._polite, self._policy, uri, host, held, treatment, self._now, self._max_bytes)
        if held is None or way is Way.GET:
            return await visiting.whole()
        if way is Way.HEAD:
            return await visiting.by_head()
        return await visiting.deciding(held, condition=way is Way.CONDITIONAL)


@dataclass(slots=True)
class _Visiting:
    """One visit of one page."""

    polite: PoliteVisitor
    policy: Policy
    uri: str
    host: str
    held: Held | None
    treatment: Treatment
    now: Callable[[], int]
    max_bytes: int

    async def whole(self, decision: Decision | None = None, weight: int | None = None) -> Found:
        """Ask for the whole page, without a condition; once more of a server that says 304 to that."""
        reply = await ask(self.polite, Question(self.uri, max_bytes=self.max_bytes))
        if reply.last.status == 304:
            reply.close()
            self._note("unasked")
            reply = await ask(self.polite, Question(self.uri, max_bytes=self.max_bytes, others=_PLAIN))
        visit = visit_of(self.uri, reply.last)
        if decision is None and self.held is not None and _is_success(reply):
            decision = self.policy.decide(self.host, self.held.visit, visit)
        if reply.last.status == 304:
            reply.close()
            raise SiteError("it says 304 although nobody asked whether it changed", "unasked-304")
        return Found("answered", visit, self.treatment, reply, decision, weight)

    async def by_head(self) -> Found:
        """Ask for the headers, and for the page if they say so."""
        held = self._held()
        reply = await ask(self.polite, Question(self.uri, "HEAD", max_bytes=self.max_bytes))
        reply.close()
        if not _is_success(reply):
            if reply.last.status in _NO_HEAD:
                self._note("head_unlike")
            return await self.deciding(held, condition=False)
        shown = visit_of(self.uri, reply.last)
        decision = self.policy.decide(self.host, held.visit, shown)
        can_ask = bool(held.validators) and reply.last.uri == held.final
        if decision.download or decision.audit:
            return await self._checked(shown, decision, can_ask=can_ask)
        if can_ask and self.treatment.wants_skips_measured:
            return await self._measured(held, shown, decision, reply)
        return Found("skipped", shown, self.treatment, reply, decision)

    async def _checked(self, shown: Visit, decision: Decision, *, can_ask: bool) -> Found:
        """Download what HEAD says has changed, or what is to be audited, and compare what both say."""
        weight = None if decision.download else self.policy.weight
        if can_ask and decision.download and self.treatment.wants_downloads_measured:
            held = self._held()
            reply = await ask(self.polite, self._question(held.validators))
            if reply.last.status != 304:
                self._note("sent")
                found = Found("answered", visit_of(self.uri, reply.last), self.treatment, reply, decision, weight)
            else:
                reply.close()
                self._note("against")
                found = await self.whole(decision, weight)
        else:
            found = await self.whole(decision, weight)
        if found.reply is not None and _is_success(found.reply):
            is_alike = all(getattr(shown, name) == getattr(found.visit, name) for name in _COMPARED)
            # A page may change between the two: only what is not there at all is a habit.
            is_missing = any(
                (getattr(shown, name) is None) != (getattr(found.visit, name) is None) for name in _COMPARED
            )
            self._note("head_alike" if is_alike else "head_unlike" if is_missing else None)
            found.treatment = self.treatment
        return found

    async def _measured(self, held: Held, shown: Visit, decision: Decision, before: Reply) -> Found:
        """See whether a condition gets 304 where the scheme skips: then that is what is kept."""
        reply = await ask(self.polite, self._question(held.validators, wants=lambda _: False))
        if reply.last.status == 304:
            self._note("spared")
            return Found("not-modified", replace(shown, status=304), self.treatment, reply, decision, had_304=True)
        reply.close()
        if _is_success(reply):
            self._note("needless")
        return Found("skipped", shown, self.treatment, before, decision)

    async def deciding(self, held: Held, *, condition: bool) -> Found:
        """Ask for the page, and break off behind the headers if the scheme skips it; 304 does the same."""
        decided: list[Decision] = []

        def wants(visit: Visit) -> bool:
            decided.append(self.policy.decide(self.host, held.visit, replace(visit, time=self.now())))
            return decided[-1].download or decided[-1].audit

        reply = await ask(self.polite, self._question(held.validators if condition else (), wants=wants))
        if reply.last.status == 304 and reply.had_condition:
            return await self._spared(held, reply)
        if reply.last.status == 304:
            reply.close()
            self._note("unasked")
            return await self.whole()
        visit = visit_of(self.uri, reply.last)
        if not _is_success(reply) or not decided:
            return Found("answered", visit, self.treatment, reply)
        decision = decided[-1]
        can_ask = bool(held.validators) and reply.last.uri == held.final
        if condition and reply.had_condition:
            self._note("sent" if decision.download else "needless")
        elif can_ask and decision.download and not self.treatment.sent and not self.treatment.against:
            await self._measure_download(held)
        if not reply.last.has_body:
            if not condition and can_ask and self.treatment.wants_skips_measured:
                return await self._measured(held, visit, decision, reply)
            return Found("skipped", visit, self.treatment, reply, decision)
        weight = None if decision.download else self.policy.weight
        return Found("answered", visit, self.treatment, reply, decision, weight)

    async def _measure_download(self, held: Held) -> None:
        """See whether a condition gets the page where the scheme downloads it; that has come already."""
        reply = await ask(self.polite, self._question(held.validators, wants=lambda _: False))
        reply.close()
        self._note("against" if reply.last.status == 304 else "sent" if _is_success(reply) else None)

    async def _spared(self, held: Held, reply: Reply) -> Found:
        """Believe 304, unless the scheme does not, or it is to be audited."""
        visit = updated(held.visit, visit_of(self.uri, reply.last))
        decision = self.policy.decide(self.host, held.visit, visit)
        if decision.download:
            reply.close()
            self._note("against")
            return await self.whole(decision)
        if decision.audit:
            reply.close()
            found = await self.whole(decision, self.policy.weight)
            found.had_304 = True
            return found
        self._note("spared")
        return Found("not-modified", replace(visit, digest=None), self.treatment, reply, decision, had_304=True)

    def _question(
        self, condition: tuple[tuple[str, str], ...], wants: Callable[[Visit], bool] | None = None
    ) -> Question:
        return Question(self.uri, "GET", condition, self._held().final, wants, self.max_bytes)

    def _held(self) -> Held:
        if self.held is None:
            raise RuntimeError("nothing is held")
        return self.held

    def _note(self, name: str | None) -> None:
        if name is not None:
            self.treatment = self.treatment.noting(name)


def _is_success(reply: Reply) -> bool:
    return 200 <= reply.last.status < 300
