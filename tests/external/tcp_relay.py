"""A TCP relay that a test can cut, as if the network failed."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """Forwards bytes until it is cut; then it drops them silently until it is restored."""

    def __init__(self, port: int) -> None:
        self._target_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._connected = threading.Event()
        self._connected.set()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Drop all bytes."""
        self._connected.clear()

    def restore(self) -> None:
        """Forward bytes of new connections again; the old ones are closed."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._connected.set()

    def close(self) -> None:
        """Close everything."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.restore()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connected.wait()
                server = socket.create_connection(("127.0.0.1", self._target_port))
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source:
            while data := source.recv(1 << 16):
                self._connected.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


@contextmanager
def run_relay(port: int) -> Iterator[Relay]:
    """Relay connections to a port."""
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()
