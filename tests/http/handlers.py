"""What servers say, right or wrong."""

from tests.neighbours.faults import Answering, Talk

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def ok(talk: Talk) -> None:
    """Answer as one should."""
    await talk.answer(200, b"ok")


def first(fault: Answering, times: int = 1) -> Answering:
    """Return what does something wrong with the first requests, and answers the others."""

    async def answering(talk: Talk) -> None:
        await (fault(talk) if talk.number < times else talk.say(OK))

    return answering


def saying(*pieces: bytes) -> Answering:
    """Return what sends bytes and then hangs."""

    async def answering(talk: Talk) -> None:
        await talk.say(*pieces)
        await talk.gone()

    return answering


async def reset(talk: Talk) -> None:
    """End the connection at once."""
    await talk.reset()


def script(*answers: bytes, close: bool = False) -> Answering:
    """Return what gives prepared answers one after the other, and then closes the connection if it should."""

    async def answering(talk: Talk) -> None:
        await talk.say(answers[min(talk.number, len(answers) - 1)])
        if close:
            talk.writer.close()

    return answering
