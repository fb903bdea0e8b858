"""The page that submits an order: validation of each field, and what archives hold. Works without scripts."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from unlost.aggregate.models import AggregateResult, MementoFinder, RoutingOptions
from unlost.aggregate.request import parse_typed_url
from unlost.errors import BusyError, InputError, NotKeptError, UsageError
from unlost.jobs.limits import LookupRateLimit, normalize_host
from unlost.jobs.models import PACKAGE_FORMATS, parse_order
from unlost.jobs.service import JobService
from unlost.jobs.tables import hash_customer
from unlost.uri.normalize import normalize_input_url
from unlost.webui.render import PAGE_HEADERS, CsrfForms, FormValues, PageRenderer
from unlost.webui.templating import strings_for_request

FORM_FIELDS = ("url", "mail", "name", "what", "when", "at", "from", "to", "windows", "format")
"""What the form has one value of."""

_CHOICES = {
    "what": ("site", "page"),
    "when": ("newest", "around", "between"),
    "windows": ("yes", "no"),
    "format": PACKAGE_FORMATS,
}
_EXPLAINED_FIELDS = ("url", "mail", "name", "at", "from", "to", "archives", "format")
_VALID_VALUES: dict[str, object] = {"url": "http://example.com/", "mail": "a@example.com"}  # in place of what is wrong
_EMPTY_FORM = {**dict.fromkeys(FORM_FIELDS, ""), "what": "site", "when": "newest", "windows": "yes", "format": "zip"}
_MAX_ECHOED = 3_000  # letters of what somebody typed that are given back


@dataclass(frozen=True, slots=True)
class HoldingsSummaryRow:
    """What an archive holds of a page. first, last: years."""

    archive: str
    copies: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class HoldingsSummary:
    """What archives hold of a page. first, last: dates of 14 digits; None if there is nothing. failed: archives."""

    copies: int
    first: str | None
    last: str | None
    rows: tuple[HoldingsSummaryRow, ...]
    failed: tuple[str, ...]


def summarize_holdings(found: AggregateResult) -> HoldingsSummary:
    """Return what there is to say before somebody orders."""
    copies = found.mementos
    counts = found.mementos.by_archive_and_year()
    rows = [
        HoldingsSummaryRow(name, sum(years.values()), min(years), max(years)) for name, years in counts.items() if years
    ]
    rows.sort(key=lambda row: (-row.copies, row.archive))
    count = len(copies)
    first, last = (copies[0].datetime, copies[count - 1].datetime) if count else (None, None)
    return HoldingsSummary(
        count, first, last, tuple(rows), tuple(dict.fromkeys(each.archive for each in found.failures))
    )


class SubmitPages:
    """The pages below `/recover`. limit: how often one visitor may have archives asked."""

    def __init__(
        self,
        service: JobService,
        finder: MementoFinder,
        renderer: PageRenderer,
        forms: CsrfForms,
        limit: LookupRateLimit,
    ) -> None:
        self._service = service
        self._finder = finder
        self._get_cached: Callable[[str, RoutingOptions], AggregateResult | None] = getattr(
            finder, "get_cached", lambda _uri, _wish: None
        )
        self._limit = limit
        self._renderer = renderer
        self._forms = forms
        self.routes = [
            Route("/recover", self._submit, methods=["GET", "POST"]),
            Route("/recover/check", self._check, methods=["POST"]),
            Route("/recover/holdings", self._holdings, methods=["GET"]),
            Route("/recover/sent/{key}", self._sent, methods=["GET"]),
            Route("/privacy", self._privacy, methods=["GET"]),
        ]

    async def _submit(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(request, {**_EMPTY_FORM, "url": request.query_params.get("url", "")[:_MAX_ECHOED]}, [])
        values = await self._forms.read(request)
        archives = values.get_all("archives")
        shown = {name: values.text(name)[:_MAX_ECHOED] for name in FORM_FIELDS}
        shown |= {name: _EMPTY_FORM[name] for name, known in _CHOICES.items() if shown[name] not in known}
        if "look" in values:
            return self._form(request, shown, archives, look=await self._lookup(request, shown["url"]))
        sent = form_to_json(values, strings_for_request(request).language)
        faults = await self._find_faults(sent)
        if faults:
            return self._form(request, shown, archives, faults=faults, status=400)
        order = parse_order(sent, self._service.archives)
        origin = self._service.clients.order_origin(request)
        job = await self._service.run_order(self._service.store.submit, order, origin=origin)
        # Reloading what comes now must not order it twice.
        return RedirectResponse(f"/recover/sent/{self._service.signer.owner_key(job.number)}", 303, PAGE_HEADERS)

    def _form(
        self,
        request: Request,
        values: Mapping[str, str],
        archives: Collection[str],
        *,
        faults: Mapping[str, str] | None = None,
        look: HoldingsSummary | str | None = None,
        status: int = 200,
    ) -> Response:
        t = strings_for_request(request)
        told = {name: t(f"fault.{fault}") for name, fault in (faults or {}).items()}
        return self._renderer.render(
            request, "order/submit.html", status, values=values, chosen=archives, faults=told,
            archives=sorted(self._service.archives), holdings=look,
        )  # fmt: skip

    async def _find_faults(self, sent: Mapping[str, object]) -> dict[str, str]:
        """Return what is wrong, by field, as the names of texts."""
        faults = find_order_faults(sent, self._service.archives)
        if "url" not in faults:
            rules, url = self._service.store.rules, normalize_input_url(str(sent["url"]))
            if rules.refuses_private(normalize_host(url)):
                faults["url"] = "private"
            elif await self._service.run_query(rules.is_blocked, url):
                faults["url"] = "blocked"
        customer = hash_customer(str(sent["mail"]))
        if "mail" not in faults and await self._service.run_query(self._service.store.is_unsubscribed, customer):
            faults["mail"] = "stopped"
        return faults

    async def _lookup(self, request: Request, address: str) -> HoldingsSummary | str:
        """Return what archives hold of a page; the name of a text if they cannot be asked, or if it is none.

        What is known already is told to everybody; archives are asked for one visitor only so often.
        """
        try:
            uri = parse_typed_url(address)
            found = self._get_cached(uri, RoutingOptions())
            if found is None:
                if not await self._service.run_query(
                    self._limit.try_acquire, self._service.clients.client_hash(request)
                ):
                    return "later"
                found = await self._finder.find(uri)
            return summarize_holdings(found)
        except (InputError, UsageError, NotKeptError, BusyError):
            return "problem"

    async def _check(self, request: Request) -> Response:
        """Say what is wrong with each field, for a script that asks while somebody types."""
        values = await self._forms.read(request)
        t = strings_for_request(request)
        faults = await self._find_faults(form_to_json(values, t.language))
        return JSONResponse({name: t(f"fault.{fault}") for name, fault in faults.items()}, headers=PAGE_HEADERS)

    async def _holdings(self, request: Request) -> Response:
        look = await self._lookup(request, request.query_params.get("url", "")[:_MAX_ECHOED])
        return self._renderer.render(request, "order/holdings.html", holdings=look)

    async def _sent(self, request: Request) -> Response:
        job = await self._service.find_owned(request.path_params["key"])
        if job is None:
            return self._renderer.render_problem(request, "job", 404)
        return self._renderer.render(
            request, "order/sent.html", job=job, link=f"/jobs/{request.path_params['key']}",
            sends_mail=self._service.sends_mail, days=self._service.store.retention.pending,
        )  # fmt: skip

    async def _privacy(self, request: Request) -> Response:
        return self._renderer.render(
            request, "order/privacy.html", terms=self._service.store.retention, contact=self._service.contact
        )  # fmt: skip


def form_to_json(values: FormValues, language: str) -> dict[str, object]:
    """Return a form as the object that `order_of` reads."""
    when = values.text("when")
    wanted = {"around": ("at",), "between": ("from", "to")}.get(when, ())
    return {
        "url": values.text("url"),
        "mail": values.text("mail"),
        "name": values.text("name"),
        "page": values.text("what") == "page",
        "archives": values.get_all("archives"),
        **{name: values.text(name) for name in wanted},
        "windows": values.text("windows") != "no",
        "format": values.text("format") or None,
        "language": language,
    }


def find_order_faults(sent: Mapping[str, object], known_archives: Collection[str]) -> dict[str, str]:
    """Return the fields of an order that are wrong, each with the name of a text that says what was expected."""
    faults: dict[str, str] = {}
    values = dict(sent)
    while True:
        try:
            parse_order(values, known_archives)
        except UsageError as error:
            name = str(error).partition(":")[0].partition(" ")[0]
            if name in faults or name not in values:
                return {**faults, "url": "other"}
            # "from is later than to" is the second one's fault.
            place = "to" if name == "from" and " is later" in str(error) else name
            faults[place] = place if place in _EXPLAINED_FIELDS else "other"
            values[place] = _VALID_VALUES.get(place)
        else:
            return faults
