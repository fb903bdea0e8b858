"""The baseline of the warm cache: a bare Starlette route that returns bytes, under the same server. Prints its port."""

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def main() -> None:
    """Serve bodies whose length is the last segment of the path."""

    async def bare(request: Request) -> Response:
        return Response(bytes(int(request.path_params["length"])), media_type="application/link-format")

    app = Starlette(routes=[Route("/timemap/link/{length}", bare)])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        config = uvicorn.Config(app, log_config=None, loop="uvloop", http="httptools", access_log=False, lifespan="off")
        uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
