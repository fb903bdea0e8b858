"""A service's jobs over HTTP, as the commands ask for them."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from unlost._core import VERSION
from unlost.errors import InputError, JobError, UsageError

_TIMEOUT_SECONDS = 60.0
_MAX_BYTES = 64 << 20


class JobServiceClient:
    """Asks one service. token: of an administrator, or nothing."""

    def __init__(self, server: str, token: str | None) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("--server: expected the address of a service, such as https://recover.example.org")
        self._base = server.rstrip("/")
        self._token = token

    def request(
        self,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        is_post: bool = False,
        query: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the object that comes back.

        Raises JobError for what cannot be done with a job, UsageError for what the service says is wrong with the
        request, and InputError where it does not answer.
        """
        url = f"{self._base}{path}"
        if query:
            url = f"{url}?{urlencode(query)}"
        data = None if body is None and not is_post else json.dumps(body or {}).encode()
        headers = {"User-Agent": f"unlost/{VERSION}", "Accept": "application/json", "Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(url, data, headers)  # noqa: S310  its scheme was looked at
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
                found = json.loads(answer.read(_MAX_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                raise _service_error(error.code, error.read(1 << 16)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise InputError(f"{self._base}: no answer of a service with jobs: {reason}") from None
        if not isinstance(found, dict):
            raise InputError(f"{self._base}: no answer of a service with jobs")
        return found


def _service_error(status: int, body: bytes) -> UsageError | JobError | InputError:
    try:
        message = str(json.loads(body)["error"])[:500]
    except (ValueError, KeyError, TypeError):
        message = f"the service answered {status}: does it take orders (`unlost serve --jobs`)?"
    if status in (409, 429):
        return JobError(message)
    return UsageError(message) if status in (400, 401, 404) else InputError(message)
