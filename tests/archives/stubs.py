"""Responses without a network."""

import io

from unlost.errors import FailedError
from unlost.http import HttpRequest, HttpResponse
from unlost.registry import Archive


def reply(url: str, body: bytes = b"", status: int = 200, **headers: str) -> HttpResponse:
    """Return a response; the keyword `Content_Type` is the header Content-Type."""
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return HttpResponse(url, status, fields, io.BytesIO(body), len(body))


class StubHttpClient:
    """An HTTP client with prepared responses by URL; other requests fail.

    requests: the requested URLs in order.
    """

    def __init__(self, *replies: HttpResponse) -> None:
        self._replies = {each.url: each for each in replies}
        self.requests: list[str] = []

    async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
        """Return the response. Raises FailedError."""
        self.requests.append(request.url)
        if request.url not in self._replies:
            raise FailedError("no such server", archive.id, "refused")
        return self._replies[request.url]
