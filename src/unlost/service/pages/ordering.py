"""The page on which recoveries are ordered: checked as one types, with what archives hold, and without scripts, too."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from unlost.aggregate.found import Finds, Found
from unlost.aggregate.wish import Wish
from unlost.archives.spelling import asked
from unlost.errors import BusyError, InputError, NotKeptError, UsageError
from unlost.service.address import page_in
from unlost.service.jobs.order import FORMS, order_of
from unlost.service.jobs.rows import customer_of
from unlost.service.jobs.rules import host_of
from unlost.service.jobs_desk import Desk
from unlost.service.pages.catalogue import strings_for
from unlost.service.pages.forms import Forms, Values
from unlost.service.pages.look_limit import LookLimit
from unlost.service.pages.looks import HEADERS, Looks

FIELDS = ("url", "mail", "name", "what", "when", "at", "from", "to", "windows", "format")
"""What the form has one value of."""

_CHOICES = {
    "what": ("site", "page"),
    "when": ("newest", "around", "between"),
    "windows": ("yes", "no"),
    "format": FORMS,
}
_EXPLAINED = ("url", "mail", "name", "at", "from", "to", "archives", "format")
_SOUND: dict[str, object] = {"url": "http://example.com/", "mail": "a@example.com"}  # in place of what is wrong
_EMPTY = {**dict.fromkeys(FIELDS, ""), "what": "site", "when": "newest", "windows": "yes", "format": "zip"}
_SHOWN = 3_000  # letters of what somebody typed that are given back


@dataclass(frozen=True, slots=True)
class Row:
    """What an archive holds of a page. first, last: years."""

    archive: str
    copies: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Holdings:
    """What archives hold of a page. first, last: dates of 14 digits; None if there is nothing. failed: archives."""

    copies: int
    first: str | None
    last: str | None
    rows: tuple[Row, ...]
    failed: tuple[str, ...]


def holdings_of(found: Found) -> Holdings:
    """Return what there is to say before somebody orders."""
    copies = found.mementos
    counts = found.mementos.by_archive_and_year()
    rows = [Row(name, sum(years.values()), min(years), max(years)) for name, years in counts.items() if years]
    rows.sort(key=lambda row: (-row.copies, row.archive))
    count = len(copies)
    first, last = (copies[0].datetime, copies[count - 1].datetime) if count else (None, None)
    return Holdings(count, first, last, tuple(rows), tuple(dict.fromkeys(each.archive for each in found.failures)))


class Ordering:
    """The pages below `/recover`. limit: how often one visitor may have archives asked."""

    def __init__(self, desk: Desk, finds: Finds, looks: Looks, forms: Forms, limit: LookLimit) -> None:
        self._desk = desk
        self._finds = finds
        self._kept: Callable[[str, Wish], Found | None] = getattr(finds, "kept", lambda _uri, _wish: None)
        self._limit = limit
        self._looks = looks
        self._forms = forms
        self.routes = [
            Route("/recover", self._answer, methods=["GET", "POST"]),
            Route("/recover/check", self._check, methods=["POST"]),
            Route("/recover/holdings", self._holdings, methods=["GET"]),
            Route("/recover/sent/{key}", self._sent, methods=["GET"]),
            Route("/privacy", self._privacy, methods=["GET"]),
        ]

    async def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(request, {**_EMPTY, "url": request.query_params.get("url", "")[:_SHOWN]}, [])
        values = await self._forms.read(request)
        archives = values.many("archives")
        shown = {name: values.text(name)[:_SHOWN] for name in FIELDS}
        shown |= {name: _EMPTY[name] for name, known in _CHOICES.items() if shown[name] not in known}
        if "look" in values:
            return self._form(request, shown, archives, look=await self._look(request, shown["url"]))
        sent = object_of(values, strings_for(request).language)
        faults = await self._faults(sent)
        if faults:
            return self._form(request, shown, archives, faults=faults, status=400)
        order = order_of(sent, self._desk.archives)
        origin = self._desk.clients.origin(request)
        job = await self._desk.take(self._desk.jobs.submit, order, origin=origin)
        # Reloading what comes now must not order it twice.
        return RedirectResponse(f"/recover/sent/{self._desk.keys.owner(job.number)}", 303, HEADERS)

    def _form(
        self,
        request: Request,
        values: Mapping[str, str],
        archives: Collection[str],
        *,
        faults: Mapping[str, str] | None = None,
        look: Holdings | str | None = None,
        status: int = 200,
    ) -> Response:
        t = strings_for(request)
        told = {name: t(f"fault.{fault}") for name, fault in (faults or {}).items()}
        return self._looks.page(
            request, "order/submit.html", status, values=values, chosen=archives, faults=told,
            archives=sorted(self._desk.archives), holdings=look,
        )  # fmt: skip

    async def _faults(self, sent: Mapping[str, object]) -> dict[str, str]:
        """Return what is wrong, by field, as the names of texts."""
        faults = faults_of(sent, self._desk.archives)
        if "url" not in faults:
            rules, url = self._desk.jobs.rules, asked(str(sent["url"]))
            if rules.refuses_private(host_of(url)):
                faults["url"] = "private"
            elif await self._desk.do(rules.is_blocked, url):
                faults["url"] = "blocked"
        customer = customer_of(str(sent["mail"]))
        if "mail" not in faults and await self._desk.do(self._desk.jobs.is_unsubscribed, customer):
            faults["mail"] = "stopped"
        return faults

    async def _look(self, request: Request, address: str) -> Holdings | str:
        """Return what archives hold of a page; the name of a text if they cannot be asked, or if it is none.

        What is known already is told to everybody; archives are asked for one visitor only so often.
        """
        try:
            uri = page_in(address)
            found = self._kept(uri, Wish())
            if found is None:
                if not await self._desk.do(self._limit.takes, self._desk.clients.code(request)):
                    return "later"
                found = await self._finds.find(uri)
            return holdings_of(found)
        except (InputError, UsageError, NotKeptError, BusyError):
            return "problem"

    async def _check(self, request: Request) -> Response:
        """Say what is wrong with each field, for a script that asks while somebody types."""
        values = await self._forms.read(request)
        t = strings_for(request)
        faults = await self._faults(object_of(values, t.language))
        return JSONResponse({name: t(f"fault.{fault}") for name, fault in faults.items()}, headers=HEADERS)

    async def _holdings(self, request: Request) -> Response:
        look = await self._look(request, request.query_params.get("url", "")[:_SHOWN])
        return self._looks.page(request, "order/holdings.html", holdings=look)

    async def _sent(self, request: Request) -> Response:
        job = await self._desk.owned(request.path_params["key"])
        if job is None:
            return self._looks.problem(request, "job", 404)
        return self._looks.page(
            request, "order/sent.html", job=job, link=f"/jobs/{request.path_params['key']}",
            sends_mail=self._desk.sends_mail, days=self._desk.jobs.terms.pending,
        )  # fmt: skip

    async def _privacy(self, request: Request) -> Response:
        return self._looks.page(
            request, "order/privacy.html", terms=self._desk.jobs.terms, contact=self._desk.contact
        )  # fmt: skip


def object_of(values: Values, language: str) -> dict[str, object]:
    """Return a form as the object that `order_of` reads."""
    when = values.text("when")
    wanted = {"around": ("at",), "between": ("from", "to")}.get(when, ())
    return {
        "url": values.text("url"),
        "mail": values.text("mail"),
        "name": values.text("name"),
        "page": values.text("what") == "page",
        "archives": values.many("archives"),
        **{name: values.text(name) for name in wanted},
        "windows": values.text("windows") != "no",
        "format": values.text("format") or None,
        "language": language,
    }


def faults_of(sent: Mapping[str, object], known: Collection[str]) -> dict[str, str]:
    """Return the fields of an order that are wrong, each with the name of a text that says what was expected."""
    faults: dict[str, str] = {}
    values = dict(sent)
    while True:
        try:
            order_of(values, known)
        except UsageError as error:
            name = str(error).partition(":")[0].partition(" ")[0]
            if name in faults or name not in values:
                return {**faults, "url": "other"}
            # "from is later than to" is the second one's fault.
            place = "to" if name == "from" and " is later" in str(error) else name
            faults[place] = place if place in _EXPLAINED else "other"
            values[place] = _SOUND.get(place)
        else:
            return faults
