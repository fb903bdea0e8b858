"""One small site in four frameworks with the vault's middleware; test servers import this module by name."""

import gzip
import os
from collections.abc import AsyncIterator, Iterator

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import re_path
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from flask import Flask
from flask import Response as FlaskResponse
from flask import request as flask_request

from unlost.vault.middleware import VaultMiddleware as AsgiVault
from unlost.vault.middleware.wsgi import VaultMiddleware as WsgiVault

VAULT = os.environ.get("UNLOST_TEST_VAULT", "")
_HTML = "text/html; charset=utf-8"
_OLD = "Sat, 01 Jan 2000 00:00:00 GMT"


def respond(path: str, match: str | None, since: str | None) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body for a path: what all four serve."""
    fixed = {
        "/data.json": (200, {"Content-Type": "application/json", "ETag": '"json"'}, b"{}"),
        "/packed": (200, {"Content-Type": _HTML, "Content-Encoding": "gzip"}, gzip.compress(b"<p>packed</p>", mtime=0)),
        "/range": (206, {"Content-Type": _HTML, "Content-Range": "bytes 0-2/9"}, b"<p>"),
        "/attached": (200, {"Content-Type": _HTML, "Content-Disposition": "attachment"}, b"<p>a</p>"),
        "/fixed": (200, {"Content-Type": _HTML, "Cache-Control": "no-transform"}, b"<p>f</p>"),
        "/not-html": (200, {"Content-Type": _HTML}, b"\x89PNG\r\n\x1a\n"),
        "/missing": (404, {"Content-Type": _HTML}, b"<p>missing</p>"),
    }
    page = f"<p>Page {path.rpartition('/')[2]}</p>".encode()
    status, headers, body = fixed.get(
        path, (200, {"Content-Type": _HTML, "ETag": '"one"', "Last-Modified": _OLD}, page)
    )
    if match is not None and headers.get("ETag") in [each.strip() for each in match.split(",")]:
        return 304, {"ETag": headers["ETag"]}, b""
    if match is None and since is not None and "Last-Modified" in headers:
        return 304, {"ETag": headers["ETag"]}, b""
    return status, headers, body


def pieces() -> Iterator[bytes]:
    """Yield a page in chunks."""
    for number in range(5):
        yield f"<p>piece {number}</p>".encode()


async def pieces_later() -> AsyncIterator[bytes]:
    """Yield the chunks asynchronously."""
    for piece in pieces():
        yield piece


api = FastAPI(openapi_url=None)


@api.api_route("/{path:path}", methods=["GET", "HEAD"])
async def any_path(request: Request) -> Response:
    """Handle any request."""
    if request.url.path == "/stream":
        return StreamingResponse(pieces_later(), media_type="text/html")
    given = request.headers
    status, headers, body = respond(request.url.path, given.get("if-none-match"), given.get("if-modified-since"))
    return Response(body, status, headers)


flask = Flask(__name__)


@flask.route("/", defaults={"path": ""})
@flask.route("/<path:path>")
def flask_path(path: str) -> FlaskResponse:
    """Handle any request."""
    if path == "stream":
        return FlaskResponse(pieces(), mimetype="text/html")
    given = flask_request.headers
    status, headers, body = respond(f"/{path}", given.get("If-None-Match"), given.get("If-Modified-Since"))
    return FlaskResponse(body, status, headers)


def django_path(request: HttpRequest) -> HttpResponseBase:
    """Handle any request."""
    if request.path == "/stream":
        return StreamingHttpResponse(pieces(), content_type="text/html")
    given = request.headers
    status, headers, body = respond(request.path, given.get("If-None-Match"), given.get("If-Modified-Since"))
    made = HttpResponse(body, status=status, headers=headers)
    if status != 304:
        made["Content-Length"] = str(len(body))
    return made


if VAULT:
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        SECRET_KEY="for-tests-only",  # noqa: S106  no real secret
        MIDDLEWARE=[],
        USE_TZ=True,
    )
    django.setup()
    urlpatterns = [re_path(r"^.*$", django_path)]
    fastapi_app = AsgiVault(api, VAULT)
    flask_app = WsgiVault(flask.wsgi_app, VAULT)
    django_wsgi = WsgiVault(get_wsgi_application(), VAULT)
    django_asgi = AsgiVault(get_asgi_application(), VAULT)
