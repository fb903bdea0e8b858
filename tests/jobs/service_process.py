"""`unlost serve --jobs` as a process, with archives of a small lost site."""

import http.client
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.run import UNLOST
from tests.recovery.site import ROOT
from tests.waiting import wait_until

ORDER = {"url": ROOT, "mail": "me@example.org", "name": "Me"}


@dataclass
class HttpResponse:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401  whatever was sent
        """The decoded JSON body."""
        return json.loads(self.body)


@dataclass
class ServiceProcess:
    """A running service and the lines that it has logged."""

    folder: Path
    process: subprocess.Popen[bytes]
    lines: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def base(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        """Token of the first administrator."""
        return (self.folder / "jobs" / "admin-token").read_text().strip()

    def read(self) -> None:
        """Collect the log."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.decode())

    def wait_for_log(self, pattern: str) -> str:
        """Wait for a log line that matches, and return the first group."""
        wait_until(lambda: any(re.search(pattern, line) for line in self.lines) or self.process.poll() is not None)
        match = next((found for line in self.lines if (found := re.search(pattern, line))), None)
        assert match is not None, self.lines
        return match[1]

    def request(
        self, method: str, path: str, body: object = None, *, is_admin: bool = False, **headers: str
    ) -> HttpResponse:  # fmt: skip
        """Send one request."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            fields.setdefault("Content-Type", "application/json")
        if is_admin:
            fields["Authorization"] = f"Bearer {self.token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, data, fields)
            response = connection.getresponse()
            return HttpResponse(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def status(self, key: str) -> Any:  # noqa: ANN401  an object of JSON
        """Return the status of a job."""
        return self.request("GET", f"/api/jobs/{key}").json

    def wait_until_ended(self, key: str) -> Any:  # noqa: ANN401  an object of JSON
        """Wait until a job has ended and return its status."""
        wait_until(lambda: self.status(key)["state"] in ("complete", "failed", "cancelled"))
        return self.status(key)


@contextmanager
def run_service(
    folder: Path, registry: Path, *more: str, env: dict[str, str] | None = None
) -> Iterator[ServiceProcess]:
    """Run a service until the block ends."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("UNLOST_", "XDG_"))}
    environment |= {"UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "me@example.org", **(env or {})}
    environment.setdefault("UNLOST_WORKER_NICE", "0")  # a nice worker would starve next to other tests
    command: list[str | Path] = [UNLOST, "--log", "json", "serve", "--port", "0", "--jobs", folder / "jobs"]
    command += ["--archives", registry, *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, start_new_session=True)
    service = ServiceProcess(folder, process)
    reading = threading.Thread(target=service.read)
    reading.start()
    try:
        service.port = int(service.wait_for_log(r"listening at http://127\.0\.0\.1:(\d+)/"))
        yield service
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reading.join(30)
        assert process.stderr is not None
        process.stderr.close()
