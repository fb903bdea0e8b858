"""A TCP relay that a test can cut, as if a cable were unplugged."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """Forwards bytes until it is cut; then it drops them silently until it is restored."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._whole = threading.Event()
        self._whole.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Drop all bytes."""
        self._whole.clear()

    def mend(self) -> None:
        """Forward bytes of new connections again; the old ones are closed."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._whole.set()

    def end(self) -> None:
        """Close everything."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.mend()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._whole.wait()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source:
            while data := source.recv(1 << 16):
                self._whole.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


@contextmanager
def relaying(port: int) -> Iterator[Relay]:
    """Relay connections to a port."""
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.end()
