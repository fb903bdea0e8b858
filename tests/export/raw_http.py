"""What a server answers to the very bytes of a request."""

import socket
from typing import NamedTuple
from urllib.parse import quote

from tests.neighbours.pywb import without_chunks


class Answer(NamedTuple):
    """status, headers in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(port: int, path: str, host: str = "lost.example") -> Answer:
    """Ask for a path and query, escaped only where a request could not be read otherwise."""
    sent = quote(path, safe="/:?@!$&'()*+,;=-._~%[]^`{|}\\\"<>#")
    request = f"GET {sent} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(request.encode())
        answer = b""
        while data := connection.recv(1 << 16):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        assert name.lower() not in headers or name.lower() == "date", f"{name} is said twice"
        headers[name.lower()] = value
    if headers.get("transfer-encoding") == "chunked":
        body = without_chunks(body)
    return Answer(int(status.split()[1]), headers, body)


def follow(port: int, path: str, host: str = "lost.example") -> tuple[Answer, int]:
    """Ask, and follow redirects on the same host; return the last answer and how many redirects there were."""
    for count in range(5):
        answer = ask(port, path, host)
        place = answer.headers.get("location", "")
        if answer.status not in (301, 302) or not place.startswith((f"http://{host}", "/")):
            return answer, count
        path = place.removeprefix(f"http://{host}").removeprefix(f":{port}")
    raise AssertionError(f"{path}: redirected for ever")
