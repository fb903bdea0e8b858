"""The OpenAPI 3.1 paths and schemas of recovery jobs."""

from collections.abc import Mapping

from unlost.export.formats import DOWNLOAD_FORMATS
from unlost.jobs.models import (
    MAX_MAIL,
    MAX_NAME,
    MAX_START_URLS,
    MAX_URL,
    OPTION_FLAGS,
    OPTION_NUMBERS,
    PACKAGE_FORMATS,
    JobStage,
    JobState,
)
from unlost.jobs.serializers import HISTORY_MEDIA_TYPES as HISTORIES
from unlost.recovery.options import RecoverPolicy
from unlost.report.format import LANGUAGES

_Object = dict[str, object]

_TEXT: _Object = {"type": "string"}
_COUNT: _Object = {"type": "integer", "minimum": 0}
_FLAG: _Object = {"type": "boolean"}
_TIME: _Object = {"type": ["string", "null"], "description": "ISO 8601, UTC"}
_DATE: _Object = {"type": ["string", "null"], "description": "1 to 14 digits, also with dashes", "example": "2014-05"}
_KEY: _Object = {
    "name": "key",
    "in": "path",
    "required": True,
    "description": "The key of a job; for administrators its number.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": 100},
}
_ADMIN: list[_Object] = [{"token": []}]
_ERROR: _Object = {"type": "object", "required": ["error"], "properties": {"error": _TEXT}}
_ERROR_TEXTS = {
    400: "What was expected of the request is said",
    401: "The token of an administrator is missing or wrong",
    404: "No such job, or nothing to pick up",
    408: "The body did not come in time",
    409: "The job is in a state in which this cannot be done",
    413: "More than 64 KiB",
    415: "No application/json",
    416: "No such part of the file",
    429: "Too many orders: come later",
    503: "The database, or the files, cannot be reached now",
}


def _schemas() -> _Object:
    order = {
        "type": "object",
        "required": ["url", "mail"],
        "additionalProperties": False,
        "properties": {
            "url": {"type": "string", "maxLength": MAX_URL, "minLength": 1, "example": "http://example.com/"},
            "mail": {"type": "string", "maxLength": MAX_MAIL, "format": "email", "example": "you@example.org"},
            "name": {"type": "string", "maxLength": MAX_NAME},
            "page": {**_FLAG, "description": "Only this page, with what is needed to show it"},
            "archives": {"type": "array", "items": _TEXT, "maxItems": 100, "description": "Ids; none for all"},
            "at": {**_DATE, "description": "As close to this date as can be; else the last copies"},
            "from": _DATE,
            "to": _DATE,
            "format": {
                "type": "string",
                "enum": list(PACKAGE_FORMATS),
                "description": "Which package is wanted; all are made",
            },
            "language": {"type": "string", "enum": list(LANGUAGES), "description": "Of letters"},
            "windows": {**_FLAG, "default": True, "description": "Names of files that Windows takes"},
            "policy": {"type": "string", "enum": [each.value for each in RecoverPolicy]},
            "urls": {"type": "array", "items": _TEXT, "maxItems": MAX_START_URLS, "description": "Further start URLs"},
            **dict.fromkeys(OPTION_FLAGS, _FLAG),
            **{
                name: {"type": "integer", "minimum": minimum, "maximum": maximum}
                for name, (minimum, maximum) in OPTION_NUMBERS.items()
            },
        },
    }
    progress = {
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        **dict.fromkeys(("recovered", "missing", "queued"), _COUNT),
        "stage": {"enum": [*(each.value for each in JobStage), None]},
    }
    package = {"format": {"enum": list(PACKAGE_FORMATS)}, "type": _TEXT, "size": _COUNT, "sha256": _TEXT, "link": _TEXT}
    times = ("submitted", "confirmed", "begun", "ended", "picked_up", "removed_at", "not_before")
    job: _Object = {
        "number": _COUNT,
        "state": {"enum": [each.value for each in JobState]},
        **dict.fromkeys(("url", "policy", "name", "mail", "message"), _TEXT),
        **dict.fromkeys(("page", "windows"), _FLAG),
        **dict.fromkeys(times, _TIME),
        **dict.fromkeys(("at", "from", "to"), _DATE),
        "format": {"enum": list(PACKAGE_FORMATS)},
        "language": {"enum": list(LANGUAGES)},
        "archives": {"type": "array", "items": _TEXT},
        "place": {"type": ["integer", "null"], "minimum": 1},
        "progress": {"type": "object", "required": list(progress), "properties": progress},
        "packages": {
            "type": "array",
            "items": {"type": "object", "required": list(package), "properties": package},
        },
        "figures": {"type": "object"},
    }
    return {
        "Order": order,
        "Job": {"type": "object", "required": list(job), "properties": job},
        "Error": _ERROR,
    }


def _statistics_schema() -> _Object:
    """Return the schema of the statistics. Shares are from 0 to 1, or null if undefined."""
    share: _Object = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    number: _Object = {"type": ["number", "null"], "minimum": 0}
    part = _object_schema({"jobs": _COUNT, "share": share})
    spread = _object_schema(dict.fromkeys(("mean", "min", "max", "deviation"), number))
    group = {**dict.fromkeys(("complete", "discovered", "recovered"), _COUNT), "share": share}
    archive = {
        "archive": _TEXT,
        **dict.fromkeys(("used", "only"), part),
        **dict.fromkeys(("recovered", "requests"), _COUNT),
        "contribution": share,
        "requests_per_job": number,
    }
    return _object_schema(
        {
            **dict.fromkeys(("ordered", "complete"), _COUNT),
            "states": {"type": "object", "additionalProperties": _COUNT},
            **dict.fromkeys(("single_pages", "nothing_recovered"), part),
            "not_picked_up": _object_schema({"jobs": _COUNT, "share": share, "kept": _COUNT}),
            **dict.fromkeys(("discovered", "recovered", "days", "share", "share_with_something"), spread),
            "histogram": _array_schema({"from": share, "to": share, "jobs": _COUNT, "share": share}),
            "months": _array_schema({"month": _TEXT, "ordered": _COUNT, **group}),
            "tlds": _array_schema({"tld": _TEXT, **group}),
            "archives": _array_schema(archive),
        }
    )


def _object_schema(properties: Mapping[str, object]) -> _Object:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object", "required": list(properties), "additionalProperties": False, "properties": {**properties},
    }  # fmt: skip


def _array_schema(properties: Mapping[str, object]) -> _Object:
    return {"type": "array", "items": _object_schema(properties)}


def components() -> _Object:
    """Return the schemas and the authentication scheme of administrators."""
    return {"schemas": _schemas(), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}


def _responses(success: _Object, *statuses: int) -> _Object:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    failures: _Object = {
        str(status): {"description": _ERROR_TEXTS[status], "content": error} for status in (*statuses, 503)
    }
    return {**success, **failures}


def _job_response(status: int = 200) -> _Object:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}
    return {str(status): {"description": "The job", "content": content}}


def _content_of(*types: str) -> _Object:
    return {"200": {"description": "It", "content": {each.partition(";")[0]: {} for each in types}}}


def _request_body(schema: _Object) -> _Object:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _operation(summary: str, responses: _Object, **more: object) -> _Object:
    return {"summary": summary, "parameters": [_KEY], "responses": responses, **more}


def paths() -> _Object:
    """Return the paths of the jobs API."""
    order = _request_body({"$ref": "#/components/schemas/Order"})
    code = _request_body({"type": "object", "required": ["code"], "properties": {"code": _TEXT}})
    place = _request_body(
        {"type": "object", "required": ["place"], "properties": {"place": {"type": "integer", "minimum": 1}}}
    )
    worker = _request_body(
        {
            "type": "object",
            "required": ["worker"],
            "properties": {"worker": {"type": ["string", "null"], "minLength": 1, "maxLength": 200}},
        }
    )
    list_parameters: list[_Object] = [
        {"name": "state", "in": "query", "schema": {"type": "string", "enum": [each.value for each in JobState]}},
        {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
        {"name": "after", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 1 << 60}},
    ]
    history_format = {"name": "format", "in": "query", "schema": {"type": "string", "enum": list(HISTORIES)}}
    package_format = {
        "name": "form",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "enum": list(PACKAGE_FORMATS)},
    }
    package = _content_of(*DOWNLOAD_FORMATS.values())
    change_statuses = (400, 401, 404, 408, 409, 413, 415)
    job_path = "/api/jobs/{key}"
    statistics: _Object = {
        "200": {"description": "They", "content": {"application/json": {"schema": _statistics_schema()}}}
    }
    return {
        "/api/jobs": {
            "post": {
                "summary": "Order a recovery; it is confirmed by mail, unless an administrator orders it",
                "requestBody": order,
                "responses": _responses(_job_response(201), 400, 401, 408, 413, 415, 429),
                "security": [{}, *_ADMIN],
            },
            "get": {
                "summary": "Jobs, by state",
                "parameters": list_parameters,
                "responses": _responses(_content_of("application/json"), 400, 401),
                "security": _ADMIN,
            },
            "delete": {
                "summary": "Delete unconfirmed orders in bulk",
                "parameters": [
                    {
                        "name": "state",
                        "in": "query",
                        "required": True,
                        "schema": {"type": "string", "enum": ["pending"]},
                    },
                    {
                        "name": "mail_domain",
                        "in": "query",
                        "description": "Only orders with mail addresses at this domain",
                        "schema": {"type": "string"},
                    },
                    {
                        "name": "like",
                        "in": "query",
                        "description": "Only orders from the network of the job with this number",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 1 << 60},
                    },
                ],
                "responses": _responses(_content_of("application/json"), 400, 401),
                "security": _ADMIN,
            },
        },
        job_path: {
            "get": _operation("How a job stands", _responses(_job_response(), 401, 404)),
            "delete": _operation("Remove a job and its files", _responses(_job_response(), 401, 404), security=_ADMIN),
        },
        f"{job_path}/events": {
            "get": _operation(
                "How a job stands, whenever it changes: server-sent events",
                _responses(_content_of("text/event-stream"), 401, 404, 429),
            )
        },
        f"{job_path}/package/{{form}}": {
            "get": {
                "summary": "What came back, to pick up; parts of it by Range",
                "parameters": [_KEY, package_format],
                "responses": _responses({**package, "206": {"description": "A part of it"}}, 400, 401, 404, 416),
            }
        },
        f"{job_path}/confirm": {
            "post": _operation("Confirm an order", _responses(_job_response(), *change_statuses), requestBody=code)
        },
        f"{job_path}/cancel": {"post": _operation("Cancel a job", _responses(_job_response(), 401, 404, 409))},
        f"{job_path}/retry": {
            "post": _operation("Try again what has ended", _responses(_job_response(), 401, 404, 409))
        },
        f"{job_path}/pause": {
            "post": _operation("Hold a job", _responses(_job_response(), 401, 404, 409), security=_ADMIN)
        },
        f"{job_path}/resume": {
            "post": _operation("Have a paused job go on", _responses(_job_response(), 401, 404, 409), security=_ADMIN)
        },
        f"{job_path}/move": {
            "post": _operation(
                "Another place in the queue",
                _responses(_job_response(), *change_statuses),
                requestBody=place,
                security=_ADMIN,
            )
        },
        f"{job_path}/assign": {
            "post": _operation(
                "Have one worker do it",
                _responses(_job_response(), *change_statuses),
                requestBody=worker,
                security=_ADMIN,
            )
        },
        "/api/workers": {
            "get": {
                "summary": "Workers, and what they do",
                "responses": _responses(_content_of("application/json"), 401),
                "security": _ADMIN,
            }
        },
        "/api/history": {
            "get": {
                "summary": "All jobs there ever were",
                "parameters": [history_format],
                "responses": _responses(_content_of(*HISTORIES.values()), 400, 401),
                "security": _ADMIN,
            }
        },
        "/api/statistics": {
            "get": {
                "summary": "What came of all jobs, in numbers",
                "responses": _responses(statistics, 401),
                "security": _ADMIN,
            }
        },
    }
