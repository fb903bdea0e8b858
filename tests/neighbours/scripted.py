"""A web server with scripted responses, which records its requests."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from tests.neighbours.listening import listening


class Answer(NamedTuple):
    """A response; `{base}` in header values and body is replaced by the URL of the server."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | str = b""


@dataclass
class Scripted:
    """Responds by exact path and query; others yield 404.

    Attributes:
        base: Its URL without a final slash.
        asked: Paths with queries in order.
        sent: Headers of each request, by lower-case name.
    """

    base: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: list[dict[str, str]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Respond to a request."""
        path = request.raw_path
        self.asked.append(path)
        self.sent.append({name.lower(): value for name, value in request.headers.items()})
        answer = self.answers.get(path, Answer(404))
        body = answer.body.replace("{base}", self.base).encode() if isinstance(answer.body, str) else answer.body
        headers = {name: value.replace("{base}", self.base) for name, value in answer.headers.items()}
        return web.Response(status=answer.status, headers=headers, body=body)


@asynccontextmanager
async def scripted(answers: Mapping[str, Answer]) -> AsyncIterator[Scripted]:
    """Run the server on loopback."""
    server = Scripted(answers=dict(answers))
    async with listening(server.handle) as server.base:
        yield server
