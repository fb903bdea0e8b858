"""A browser without scripts: stores cookies and sends forms with the token of their page."""

import re
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import urlencode

from tests.jobs.service_process import HttpResponse, ServiceProcess

_TOKEN = re.compile(r'name="token" value="([\w-]+)"')


@dataclass
class Visitor:
    """A visitor with cookies."""

    service: ServiceProcess
    cookies: dict[str, str] = field(default_factory=dict)
    token: str = ""

    def get(self, path: str, **headers: str) -> HttpResponse:
        """Request a page; store its cookies and the token of its forms."""
        return self._kept(self.service.request("GET", path, is_admin=False, Cookie=self._cookie(), **headers))

    def post(self, path: str, fields: dict[str, str] | list[tuple[str, str]] | bytes, **headers: str) -> HttpResponse:
        """Send a form. The token is added unless the form is bytes or has one."""
        if not isinstance(fields, bytes):
            pairs = list(fields.items()) if isinstance(fields, dict) else fields
            if "token" not in dict(pairs):
                pairs = [*pairs, ("token", self.token)]
            fields = urlencode(pairs, errors="surrogatepass").encode()
        sent = {"Content_Type": "application/x-www-form-urlencoded", "Cookie": self._cookie(), **headers}
        return self._kept(self.service.request("POST", path, fields, is_admin=False, **sent))

    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def _kept(self, response: HttpResponse) -> HttpResponse:
        cookie: SimpleCookie = SimpleCookie(response.headers.get("set-cookie", ""))
        self.cookies |= {name: morsel.value for name, morsel in cookie.items()}
        if found := _TOKEN.search(response.body.decode("utf-8", "replace")):
            self.token = found[1]
        return response


def log_in(service: ServiceProcess, name: str, password: str) -> Visitor:
    """Log in an administrator."""
    visitor = Visitor(service)
    visitor.get("/admin/login")
    response = visitor.post("/admin/login", {"name": name, "password": password})
    assert response.status == 303, response.body
    visitor.get("/admin")
    return visitor
