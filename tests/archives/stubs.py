"""Answers without a network."""

import io

from unlost.errors import FailedError
from unlost.http import HttpRequest, HttpResponse
from unlost.registry import Archive


def reply(url: str, body: bytes = b"", status: int = 200, **headers: str) -> HttpResponse:
    """Return an answer; `Content_Type` is the header Content-Type."""
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return HttpResponse(url, status, fields, io.BytesIO(body), len(body))


class Answers:
    """An HTTP client that knows its answers beforehand, by address; what it does not know fails.

    asked: the addresses that it was asked for, in order.
    """

    def __init__(self, *replies: HttpResponse) -> None:
        self._replies = {each.url: each for each in replies}
        self.asked: list[str] = []

    async def send(self, archive: Archive, question: HttpRequest) -> HttpResponse:
        """Return the answer. Raises FailedError."""
        self.asked.append(question.url)
        if question.url not in self._replies:
            raise FailedError("nobody there", archive.id, "refused")
        return self._replies[question.url]
