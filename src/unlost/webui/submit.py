"""The order form, with validation of each field and a look-up of holdings. Works without scripts."""

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
"""Fields of the form with a single value."""

_CHOICES = {
    "what": ("site", "page"),
    "when": ("newest", "around", "between"),
    "windows": ("yes", "no"),
    "format": PACKAGE_FORMATS,
}
# Fields with a fault text of their own; the others share one.
_EXPLAINED_FIELDS = ("url", "mail", "name", "at", "from", "to", "archives", "format")
_VALID_VALUES: dict[str, object] = {"url": "http://example.com/", "mail": "a@example.com"}  # replace invalid values
_EMPTY_FORM = {
    **dict.fromkeys(FORM_FIELDS, ""),
    "what": "site",
    "when": "newest",
    "windows": "yes",
    "format": PACKAGE_FORMATS[0],
}
_MAX_ECHOED = 3_000  # characters of input that are shown again in the form


@dataclass(frozen=True, slots=True)
class HoldingsSummaryRow:
    """Number of captures of a page in one archive, and the years of the first and last."""

    archive: str
    copies: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class HoldingsSummary:
    """Captures of a page in all archives.

    Attributes:
        copies: Number of captures.
        first: Date of the first capture, 14 digits; None if there are none.
        last: Date of the last capture, 14 digits; None if there are none.
        rows: Captures by archive, most first.
        failed: Archives that did not respond.
    """

    copies: int
    first: str | None
    last: str | None
    rows: tuple[HoldingsSummaryRow, ...]
    failed: tuple[str, ...]


def summarize_holdings(result: AggregateResult) -> HoldingsSummary:
    """Summarize a look-up for the order form."""
    mementos = result.mementos
    counts = result.mementos.by_archive_and_year()
    rows = [
        HoldingsSummaryRow(name, sum(years.values()), min(years), max(years)) for name, years in counts.items() if years
    ]
    rows.sort(key=lambda row: (-row.copies, row.archive))
    count = len(mementos)
    first, last = (mementos[0].datetime, mementos[count - 1].datetime) if count else (None, None)
    return HoldingsSummary(
        count, first, last, tuple(rows), tuple(dict.fromkeys(each.archive for each in result.failures))
    )


class SubmitPages:
    """The pages below `/recover`. `limit` restricts how often a client may query archives."""

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
            finder, "get_cached", lambda _uri, _options: None
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
        echoed = {name: values.text(name)[:_MAX_ECHOED] for name in FORM_FIELDS}
        echoed |= {name: _EMPTY_FORM[name] for name, known in _CHOICES.items() if echoed[name] not in known}
        if "look" in values:
            return self._form(request, echoed, archives, holdings=await self._lookup(request, echoed["url"]))
        order_json = form_to_json(values, strings_for_request(request).language)
        faults = await self._find_faults(order_json)
        if faults:
            return self._form(request, echoed, archives, faults=faults, status=400)
        order = parse_order(order_json, self._service.archives)
        origin = self._service.clients.order_origin(request)
        job = await self._service.run_order(self._service.store.submit, order, origin=origin)
        # Redirect, so that a reload does not submit the order again.
        return RedirectResponse(f"/recover/sent/{self._service.signer.owner_key(job.number)}", 303, PAGE_HEADERS)

    def _form(
        self,
        request: Request,
        values: Mapping[str, str],
        archives: Collection[str],
        *,
        faults: Mapping[str, str] | None = None,
        holdings: HoldingsSummary | str | None = None,
        status: int = 200,
    ) -> Response:
        t = strings_for_request(request)
        fault_texts = {name: t(f"fault.{fault}") for name, fault in (faults or {}).items()}
        return self._renderer.render(
            request, "order/submit.html", status, values=values, chosen=archives, faults=fault_texts,
            archives=sorted(self._service.archives), formats=PACKAGE_FORMATS, holdings=holdings,
        )  # fmt: skip

    async def _find_faults(self, order_json: Mapping[str, object]) -> dict[str, str]:
        """Return the invalid fields, with the keys of their fault texts."""
        faults = find_order_faults(order_json, self._service.archives)
        if "url" not in faults:
            rules, url = self._service.store.rules, normalize_input_url(str(order_json["url"]))
            if rules.refuses_private(normalize_host(url)):
                faults["url"] = "private"
            elif await self._service.run_query(rules.is_blocked, url):
                faults["url"] = "blocked"
        customer = hash_customer(str(order_json["mail"]))
        if "mail" not in faults and await self._service.run_query(self._service.store.is_unsubscribed, customer):
            faults["mail"] = "stopped"
        return faults

    async def _lookup(self, request: Request, url: str) -> HoldingsSummary | str:
        """Look up the captures of a page, or return the key of an error text.

        Cached results are always returned. New queries to archives are rate limited per client.
        """
        try:
            uri = parse_typed_url(url)
            result = self._get_cached(uri, RoutingOptions())
            if result is None:
                if not await self._service.run_query(
                    self._limit.try_acquire, self._service.clients.client_hash(request)
                ):
                    return "later"
                result = await self._finder.find(uri)
            return summarize_holdings(result)
        except (InputError, UsageError, NotKeptError, BusyError):
            return "problem"

    async def _check(self, request: Request) -> Response:
        """Return the faults of all fields as JSON, for validation while the user types."""
        values = await self._forms.read(request)
        t = strings_for_request(request)
        faults = await self._find_faults(form_to_json(values, t.language))
        return JSONResponse({name: t(f"fault.{fault}") for name, fault in faults.items()}, headers=PAGE_HEADERS)

    async def _holdings(self, request: Request) -> Response:
        holdings = await self._lookup(request, request.query_params.get("url", "")[:_MAX_ECHOED])
        return self._renderer.render(request, "order/holdings.html", holdings=holdings)

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
    """Convert a form to the JSON object that `parse_order` reads."""
    when = values.text("when")
    date_fields = {"around": ("at",), "between": ("from", "to")}.get(when, ())
    return {
        "url": values.text("url"),
        "mail": values.text("mail"),
        "name": values.text("name"),
        "page": values.text("what") == "page",
        "archives": values.get_all("archives"),
        **{name: values.text(name) for name in date_fields},
        "windows": values.text("windows") != "no",
        "format": values.text("format") or None,
        "language": language,
    }


def find_order_faults(order_json: Mapping[str, object], known_archives: Collection[str]) -> dict[str, str]:
    """Return the invalid fields of an order, with the keys of their fault texts."""
    faults: dict[str, str] = {}
    values = dict(order_json)
    while True:
        try:
            parse_order(values, known_archives)
        except UsageError as error:
            name = str(error).partition(":")[0].partition(" ")[0]
            if name in faults or name not in values:
                return {**faults, "url": "other"}
            # "from is later than to" is reported at the second field.
            field = "to" if name == "from" and " is later" in str(error) else name
            faults[field] = field if field in _EXPLAINED_FIELDS else "other"
            values[field] = _VALID_VALUES.get(field)
        else:
            return faults
