"""Archives that have every page and take a second for each TimeMap. A separate process.

usage: python -m bench.slow_timemaps ARCHIVES MILLISECONDS MEMENTOS
Prints the ports, then serves until its standard input ends. Each archive lists MEMENTOS mementos of every page.
"""

import asyncio
import sys
from typing import cast

import uvloop


class Archive(asyncio.Protocol):
    """Responds on one connection, one request after another."""

    def __init__(self, name: str, seconds: float, mementos: int) -> None:
        self._name = name
        self._seconds = seconds
        self._mementos = mementos
        self._text = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Respond to each whole request after some time."""
        self._text += data
        while b"\r\n\r\n" in self._text:
            head, _, self._text = self._text.partition(b"\r\n\r\n")
            page = head.split(b" ", 2)[1].decode().removeprefix("/timemap/link/")
            asyncio.get_running_loop().call_later(self._seconds, self._respond, page)

    def _respond(self, page: str) -> None:
        lines = [f'<{page}>; rel="original"']
        for number in range(self._mementos):
            date = f"{2010 + number % 10}0210000001"
            day = f"Mon, 10 Feb {2010 + number % 10} 00:00:01 GMT"
            lines.append(f'<http://{self._name}/web/{date}/{page}>; rel="memento"; datetime="{day}"')
        body = ",\n".join(lines).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/link-format\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)


async def serve(archives: int, milliseconds: float, mementos: int) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(
            lambda name=f"a{number}.example": Archive(name, milliseconds / 1e3, mementos),  # type: ignore[misc]
            "127.0.0.1",
            0,
            backlog=1024,
        )
        for number in range(archives)
    ]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
