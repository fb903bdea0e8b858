"""A web server that says what a test tells it to, and remembers what it was asked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from tests.neighbours.listening import listening


class Answer(NamedTuple):
    """What is said: a status, headers and a body, in which `{base}` is the address of the server."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | str = b""


@dataclass
class Scripted:
    """Answers by path and query, as they stand in the request; what it does not know is 404.

    base: its address, without a slash at the end.
    asked: every path with its query, in order; sent: the headers, in lower case, of each.
    """

    base: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: list[dict[str, str]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Answer one request."""
        path = request.raw_path
        self.asked.append(path)
        self.sent.append({name.lower(): value for name, value in request.headers.items()})
        answer = self.answers.get(path, Answer(404))
        body = answer.body.replace("{base}", self.base).encode() if isinstance(answer.body, str) else answer.body
        headers = {name: value.replace("{base}", self.base) for name, value in answer.headers.items()}
        return web.Response(status=answer.status, headers=headers, body=body)


@asynccontextmanager
async def scripted(answers: Mapping[str, Answer]) -> AsyncIterator[Scripted]:
    """Run such a server on a port of the loopback interface."""
    server = Scripted(answers=dict(answers))
    async with listening(server.handle) as server.base:
        yield server
