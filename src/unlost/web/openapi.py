"""The OpenAPI 3.1 description of the service."""

from unlost._core import VERSION
from unlost.aggregate.request import MEMENTO_FORMATS, SUMMARY_FORMATS, TIMEMAP_FORMATS
from unlost.aggregate.serializers import MEDIA_TYPES

_Object = dict[str, object]

_PAGE: _Object = {
    "name": "uri",
    "in": "path",
    "required": True,
    "description": "The page (URI-R), as it is or escaped once; its query is its own.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 2000},
    "example": "http://example.com/",
}
_DATE: _Object = {
    "name": "date",
    "in": "path",
    "required": True,
    "description": "YYYY[MM[DD[hh[mm[ss]]]]], UTC.",
    "schema": {"type": "string", "pattern": "^[0-9]{4}([0-9]{2}){0,5}$"},
    "example": "20140210",
}
_PREFER: _Object = {
    "name": "Prefer",
    "in": "header",
    "description": 'Which archives to ask: archives="a,b", broadcast, top-k=3, min-probability=0.05.',
    "schema": {"type": "string"},
    "example": "top-k=3",
}
_ACCEPT_DATETIME: _Object = {
    "name": "Accept-Datetime",
    "in": "header",
    "description": "The date to be close to, in GMT; without it, the last copy.",
    "schema": {"type": "string"},
    "example": "Mon, 10 Feb 2014 00:00:01 GMT",
}
_OPTIONS: list[_Object] = [
    {"name": "archives", "in": "query", "description": "Ids, with commas.", "schema": {"type": "string"}},
    {"name": "broadcast", "in": "query", "schema": {"type": "string", "enum": ["0", "1"]}},
    {"name": "top_k", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
    {
        "name": "min_probability",
        "in": "query",
        "description": "How likely an archive must have the page to be asked.",
        "schema": {"type": "string", "pattern": r"^(0?\.[0-9]{1,9}|0|1)$"},
    },
]
_TEXT: _Object = {"text/plain": {"schema": {"type": "string"}}}
_TYPES: dict[str, str] = dict(MEDIA_TYPES.items())


def _format_parameter(formats: tuple[str, ...], location: str = "path") -> _Object:
    return {
        "name": "format",
        "in": location,
        "required": location == "path",
        "schema": {"type": "string", "enum": [*formats]},
    }


def _responses(success: _Object, *statuses: int) -> _Object:
    descriptions = {
        302: "Found: Location is the address of the copy",
        400: "A request, an address or a date that is malformed; what was expected is said",
        404: "No mementos: every routed archive answered",
        414: "An address that is too long",
        451: "The archive does not show it",
        502: "The archive does not give its copy",
        503: "No mementos found, but archives did not answer (X-Archives-Failed names them), or too many requests; "
        "see Retry-After",
        504: "Nothing was kept, or the archive did not answer in time",
    }
    errors: _Object = {str(status): {"description": descriptions[status], "content": _TEXT} for status in statuses}
    return {**success, **errors}


def _ok(*types: str) -> _Object:
    return {"200": {"description": "It", "content": {name.partition(";")[0]: {} for name in types}}}


def _get(summary: str, parameters: list[_Object], responses: _Object) -> _Object:
    return {"get": {"summary": summary, "parameters": parameters, "responses": responses}}


def build_openapi(base: str, has_map: bool, jobs: _Object | None = None) -> _Object:
    """Return the OpenAPI description as a JSON object.

    Args:
        base: Base URL of the service.
        has_map: Whether a MementoMap is published.
        jobs: Paths and components of the jobs API, if it is served.
    """
    timemap_types = [_TYPES[form] for form in TIMEMAP_FORMATS]
    memento_types = [_TYPES[form] for form in MEMENTO_FORMATS if form in _TYPES]
    error_statuses = (400, 404, 414, 503, 504)
    memento_responses = _responses(_ok(*memento_types, "*/*"), 302, *error_statuses, 451, 502)
    find_parameters = [
        {**_PAGE, "in": "query"},
        _format_parameter(TIMEMAP_FORMATS, "query"),
        {**_DATE, "in": "query", "required": False},
        *_OPTIONS,
    ]
    health = _ok("application/json")
    if jobs:
        health = {**health, "503": {"description": "No database", "content": {"application/json": {}}}}
    paths: _Object = {
        "/timemap/{format}/{uri}": _get(
            "All copies of a page",
            [_format_parameter(TIMEMAP_FORMATS), _PAGE, _PREFER],
            _responses(_ok(*timemap_types), *error_statuses),
        ),
        "/timegate/{uri}": _get(
            "The copy closest to a date", [_PAGE, _ACCEPT_DATETIME, _PREFER], _responses({}, 302, *error_statuses)
        ),
        "/memento/{date}/{uri}": _get(
            "The copy closest to a date, which is in the path",
            [_DATE, _PAGE, _PREFER],
            _responses({}, 302, *error_statuses),
        ),
        "/memento/{format}/{date}/{uri}": _get(
            "What there is to say of the closest copy; `proxy`: the copy itself",
            [_format_parameter(MEMENTO_FORMATS), _DATE, _PAGE, _PREFER],
            memento_responses,
        ),
        "/api/{format}/{date}/{uri}": _get(
            "The same by another name, as MemGator has it",
            [_format_parameter(MEMENTO_FORMATS), _DATE, _PAGE, _PREFER],
            memento_responses,
        ),
        "/api/find": _get(
            "All copies, with every option a parameter",
            find_parameters,
            _responses(_ok(*timemap_types), *error_statuses),
        ),
        "/summary/{format}/{uri}": _get(
            "How many copies, by archive and year",
            [_format_parameter(SUMMARY_FORMATS), _PAGE, _PREFER],
            _responses(_ok(*(_TYPES[form] for form in SUMMARY_FORMATS)), *error_statuses),
        ),
        "/about": _get("Archives: which are asked, and why", [], _ok("application/json", "text/html")),
        "/metrics": _get("Numbers, for Prometheus", [], _ok("text/plain")),
        "/health": _get("Whether the service answers", [], health),
        "/openapi.json": _get("This description", [], _ok("application/json")),
    }
    if has_map:
        paths["/mementomap"] = _get("What the archive holds", [], _ok("text/plain", "application/gzip"))
    return {
        "openapi": "3.1.0",
        "info": {"title": "unlost", "version": VERSION, "description": "Who has a page, and when."},
        "servers": [{"url": base}],
        "paths": paths | (jobs or {}).get("paths", {}),  # type: ignore[operator]
        **{name: value for name, value in (jobs or {}).items() if name != "paths"},
    }
