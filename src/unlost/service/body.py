"""The body of a request, within bounds: of strangers, who may send much, or nothing for ever."""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

MAX_BODY_BYTES = 1 << 16
"""Of an order or a form: the largest has a few thousand."""

_BODY_SECONDS = 20.0  # from the end of the headers to that of the body: as long as for the headers themselves


async def read_body(request: Request) -> bytes:
    """Return the body of a request. Raises 400 if the client went away meanwhile, 408 and 413."""
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                data += piece
                if len(data) > MAX_BODY_BYTES:
                    raise HTTPException(413, f"expected at most {MAX_BODY_BYTES} bytes")
    except ClientDisconnect:
        raise HTTPException(400, "the body ended early") from None
    except TimeoutError:
        raise HTTPException(408, f"expected the body within {_BODY_SECONDS:g} s", {"connection": "close"}) from None
    return bytes(data)
