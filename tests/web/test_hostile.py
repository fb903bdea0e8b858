"""Malicious requests: no header injection, no unlimited requests."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.web.client import Client
from tests.web.fixed_results import HEAD_SECONDS, PAGE

PATHS = [
    "/timemap/link/http://a.example/%0d%0aX-Injected:%20yes",
    "/timegate/http://a.example/%0d%0aX-Injected:%20yes%0d%0a%0d%0a<script>",
    "/memento/2014/http://a.example/%0aX-Injected:yes",
    "/timemap/link/http://a.example/%00",
    "/timemap/link/http://a.example/%22%3E%3Cscript%3E",
    "/timemap/link/%0d%0aX-Injected:yes",
    "/timemap/link/http:/a",
    "/timemap/link/http:///a",
    "/timemap/link/http://[::1",
    "/timemap/link/http://a.example/../../etc/passwd",
    "/timemap/link/../../../etc/passwd",
    "/timemap/link/http://a.example/%zz%",
    "/timemap/link/http://a.example/%ff%fe",
    "/timemap/link/http://%E2%80%AE.example/",
    "/timemap/link/http://user:pass@a.example/",
    "/timemap/link/javascript:alert(1)",
    "/timemap/link/" + "%25" * 2_000,
    "/timemap/link/http://" + "a." * 4_000,
    "/timemap/link/?",
    "/timemap/link/?http://a.example/",
    "//timemap/link/http://a.example/",
    "/memento/%32%30%31%34/http://a.example/",
    "/memento/2014%0d%0a/http://a.example/",
    "/?uri=%0d%0aX-Injected:%20yes",
    "/?uri=http://a.example/&year=%00&archive=%22%3E%3Cscript%3E",
    "/api/find?uri=%ff%0d%0aX-Injected:%20yes",
    "/api/find?uri=a&archives=%0d%0aX-Injected:%20yes",
    "/about?format=%0d%0aX-Injected:yes",
    "/%0d%0aX-Injected:yes",
    "/%ff",
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:50])
def test_requests_cannot_inject_headers(service: Client, path: str) -> None:
    """The response has only expected headers and no line of the request."""
    raw = service.raw(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    head, _, _ = raw.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    assert status.split()[1] in (b"200", b"302", b"400", b"404")
    assert not any(line.lower().startswith(b"x-injected") for line in lines)
    assert all(32 <= byte < 127 for line in lines for byte in line)
    assert service.request("/health").status == 200


def test_archives_cannot_inject_headers(service: Client) -> None:
    """Any URL in a TimeMap becomes one line of ASCII in Location and Link."""
    for path in ("/timegate/http://evil.example/", "/memento/2014/http://evil.example/"):
        raw = service.raw(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        head = raw.partition(b"\r\n\r\n")[0]
        assert head.startswith(b"HTTP/1.1 302")
        assert b"\nX-Injected" not in head
        assert all(32 <= byte < 127 for line in head.split(b"\r\n") for byte in line)
    moved = service.request("/memento/proxy/2014/http://moved.example/")
    assert moved.status == 302
    assert moved.headers["location"].endswith("/http://elsewhere.example/%252F%0D%0AX-Injected:%20yes")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /timemap/link/http://a/" + b"x" * 17_000 + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"414"),
        (b"GET /" + b"x" * 3_000_000, b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 100_000, b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 3_000_000, b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: " + b"y" * 49_152 + b"\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + b"X: y\r\n" * 300 + b"\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"200"),
        ("GET /timemap/link/http://a/ü HTTP/1.1\r\nHost: a\r\n\r\n".encode(), b"400"),
        (b"GET /timemap/link/http://a/ b HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"\x00\xff\r\n\r\n", b"400"),
        (b"GET /timemap/link/http://example.com/ HTTP/1.1\r\nHost: a\"><b\r\nConnection: close\r\n\r\n", b"400"),
        (b"GET /openapi.json HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", b"400"),
        (b"GET /openapi.json HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", b"400"),
        (b"GET /openapi.json HTTP/1.1\r\nHost: " + b"a" * 300 + b"\r\nConnection: close\r\n\r\n", b"400"),
    ],
    ids=["long", "endless line", "many headers", "endless header",
         "one large header", "small headers", "a second request", "some headers",
         "not ascii", "space", "garbage", "host", "host 2",
         "two hosts", "long host"],
)  # fmt: skip
def test_request_size_is_limited(service: Client, request_: bytes, status: bytes) -> None:
    """Requests that are too large or not HTTP are rejected, and others are served."""
    begin = time.monotonic()
    try:
        raw = service.raw(request_)
    except ConnectionError:
        raw = b""  # it closed before everything was sent
    assert time.monotonic() - begin < HEAD_SECONDS - 1, "it was closed by its bytes, not by the clock"
    assert raw == b"" or raw.split()[1] == status
    assert service.request("/health").status == 200


@pytest.mark.parametrize("size", [7, 1_000])
@pytest.mark.parametrize("head", [b"X: " + b"y" * 49_152, b"X: y\r\n" * 300], ids=["large", "many"])
def test_header_size_is_limited_for_fragmented_data(service: Client, head: bytes, size: int) -> None:
    """In any number of packets, as headers or as trailers after the body."""
    begin = b"POST / HTTP/1.1\r\nHost: a\r\n"
    for before in (begin, begin + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"):
        with socket.create_connection(("127.0.0.1", service.port), 30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            response = b""
            with suppress(ConnectionError):  # it closed before everything was sent
                connection.sendall(before)
                for place in range(0, len(head), size):
                    connection.sendall(head[place : place + size])
                connection.sendall(b"\r\n\r\n")
            with suppress(ConnectionError):
                while piece := connection.recv(1 << 16):
                    response += piece
        assert response == b"" or b"expected at most" in response


def test_request_headers_time_out(service: Client) -> None:
    """Connections without a complete request are closed; keep-alive connections can be reused."""
    begins = (b"", b"GET / HTTP/1.1\r\nHost: a\r\n", b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /he")
    with ThreadPoolExecutor() as together:
        responses = list(together.map(service.raw, begins))
    assert [b"200 OK" in response for response in responses] == [False, False, True]


def test_invalid_host_header_is_rejected(service: Client) -> None:
    """Links in responses use the Host header only if it is valid."""
    response = service.request(f"/timemap/link/{PAGE}")
    assert f"<{service.base}/timegate/{PAGE}>" in response.text
