"""Handlers of valid and invalid responses."""

from tests.external.fault_server import Exchange, Handler

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def ok(exchange: Exchange) -> None:
    """Respond correctly."""
    await exchange.respond(200, b"ok")


def faulty_first(fault: Handler, times: int = 1) -> Handler:
    """Return a handler with a fault for the first requests, and correct responses for the others."""

    async def answering(exchange: Exchange) -> None:
        await (fault(exchange) if exchange.number < times else exchange.send(OK))

    return answering


def send_and_hang(*pieces: bytes) -> Handler:
    """Return a handler that sends bytes and then hangs."""

    async def answering(exchange: Exchange) -> None:
        await exchange.send(*pieces)
        await exchange.wait_closed()

    return answering


async def reset(exchange: Exchange) -> None:
    """Reset the connection."""
    await exchange.reset()


def script(*answers: bytes, close: bool = False) -> Handler:
    """Return a handler of prepared responses, which closes the connection where requested."""

    async def answering(exchange: Exchange) -> None:
        await exchange.send(answers[min(exchange.number, len(answers) - 1)])
        if close:
            exchange.writer.close()

    return answering
