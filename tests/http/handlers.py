"""Handlers of valid and invalid responses."""

from tests.neighbours.faults import Answering, Talk

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def ok(talk: Talk) -> None:
    """Respond correctly."""
    await talk.answer(200, b"ok")


def faulty_first(fault: Answering, times: int = 1) -> Answering:
    """Return a handler with a fault for the first requests, and correct responses for the others."""

    async def answering(talk: Talk) -> None:
        await (fault(talk) if talk.number < times else talk.say(OK))

    return answering


def sending(*pieces: bytes) -> Answering:
    """Return a handler that sends bytes and then hangs."""

    async def answering(talk: Talk) -> None:
        await talk.say(*pieces)
        await talk.gone()

    return answering


async def reset(talk: Talk) -> None:
    """Reset the connection."""
    await talk.reset()


def script(*answers: bytes, close: bool = False) -> Answering:
    """Return a handler of prepared responses, which closes the connection where requested."""

    async def answering(talk: Talk) -> None:
        await talk.say(answers[min(talk.number, len(answers) - 1)])
        if close:
            talk.writer.close()

    return answering
