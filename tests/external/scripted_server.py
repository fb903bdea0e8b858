"""A web server with scripted responses, which records its requests."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from tests.external.local_server import serve_handler


class ScriptedResponse(NamedTuple):
    """A response; `{base}` in header values and body is replaced by the URL of the server."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | str = b""


@dataclass
class ScriptedServer:
    """Responds by exact path and query; others yield 404.

    Attributes:
        base: Its URL without a final slash.
        requests: Paths with queries in order.
        request_headers: Headers of each request, by lower-case name.
    """

    base: str = ""
    responses: dict[str, ScriptedResponse] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    request_headers: list[dict[str, str]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Respond to a request."""
        path = request.raw_path
        self.requests.append(path)
        self.request_headers.append({name.lower(): value for name, value in request.headers.items()})
        response = self.responses.get(path, ScriptedResponse(404))
        body = response.body.replace("{base}", self.base).encode() if isinstance(response.body, str) else response.body
        headers = {name: value.replace("{base}", self.base) for name, value in response.headers.items()}
        return web.Response(status=response.status, headers=headers, body=body)


@asynccontextmanager
async def scripted_server(responses: Mapping[str, ScriptedResponse]) -> AsyncIterator[ScriptedServer]:
    """Run the server on loopback."""
    server = ScriptedServer(responses=dict(responses))
    async with serve_handler(server.handle) as server.base:
        yield server
