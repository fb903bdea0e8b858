"""Sends raw HTTP requests to a server."""

import socket
from typing import NamedTuple
from urllib.parse import quote

from tests.external.pywb import decode_chunked


class RawResponse(NamedTuple):
    """A response. headers: by lower-case name."""

    status: int
    headers: dict[str, str]
    body: bytes


def fetch(port: int, path: str, host: str = "lost.example") -> RawResponse:
    """Request a path and query, escaped only where the request would be invalid otherwise."""
    sent = quote(path, safe="/:?@!$&'()*+,;=-._~%[]^`{|}\\\"<>#")
    request = f"GET {sent} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(request.encode())
        response = b""
        while data := connection.recv(1 << 16):
            response += data
    head, _, body = response.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        assert name.lower() not in headers or name.lower() == "date", f"{name} is duplicated"
        headers[name.lower()] = value
    if headers.get("transfer-encoding") == "chunked":
        body = decode_chunked(body)
    return RawResponse(int(status.split()[1]), headers, body)


def fetch_following_redirects(port: int, path: str, host: str = "lost.example") -> tuple[RawResponse, int]:
    """Follow redirects on the same host; return the last response and the number of redirects."""
    for count in range(5):
        response = fetch(port, path, host)
        location = response.headers.get("location", "")
        if response.status not in (301, 302) or not location.startswith((f"http://{host}", "/")):
            return response, count
        path = location.removeprefix(f"http://{host}").removeprefix(f":{port}")
    raise AssertionError(f"{path}: too many redirects")
