"""Forms: CSRF protection, escaping, and robustness."""

import random
import string
from dataclasses import fields
from urllib.parse import urlsplit

import pytest

from tests.jobs.service_process import ORDER, ServiceProcess
from tests.webui.environment import ADMIN, ADMIN_PASSWORD, PagesEnvironment
from tests.webui.visitor import Visitor, log_in
from unlost.jobs import OrderLimits

EVIL = "\"'><script>document.title='owned'</script><img src=x onerror=alert(1)>{{7*7}}"


@pytest.fixture(scope="module")
def key(environment: PagesEnvironment) -> str:
    """Submit an order and return its key."""
    return str(environment.service.request("POST", "/api/jobs", {**ORDER, "mail": "forms@example.org"}).json["key"])


@pytest.fixture(scope="module")
def admin(environment: PagesEnvironment) -> Visitor:
    """Log in an administrator."""
    return log_in(environment.service, ADMIN, ADMIN_PASSWORD)


def public_forms(service: ServiceProcess, key: str) -> list[str]:
    """Return the targets of public forms."""
    number = key.partition("-")[0]
    code = service.request("GET", f"/api/jobs/{number}", is_admin=True).json["number"]
    assert str(code) == number
    return ["/recover", "/recover/check", f"/jobs/{key}/cancel", f"/jobs/{key}/retry", f"/jobs/{key}/delete"]


def admin_forms(key: str) -> list[str]:
    """Return the targets of administrators' forms."""
    one = f"/admin/jobs/{key.partition('-')[0]}"
    actions = ("pause", "resume", "cancel", "retry", "confirm", "remind", "move", "assign", "delete")
    rest = [
        "/admin/limits",
        "/admin/domains",
        "/admin/takedown",
        "/admin/clock",
        "/admin/pending/delete",
        "/admin/logout",
    ]
    return [*(f"{one}/{action}" for action in actions), *rest]


def test_forged_forms_are_rejected(environment: PagesEnvironment, key: str, admin: Visitor) -> None:
    """Without a token, with another visitor's, and from another site."""
    state = environment.service.status(key)
    anonymous, other = Visitor(environment.service), Visitor(environment.service)
    anonymous.get("/recover")
    other.get("/recover")
    assert anonymous.token != other.token
    for path in [*public_forms(environment.service, key), "/admin/login"]:
        assert anonymous.post(path, {"token": ""}).status == 403, path
        assert anonymous.post(path, {"token": other.token}).status == 403, path
        assert Visitor(environment.service).post(path, {"token": anonymous.token}).status == 403, path
        assert anonymous.post(path, {}, Sec_Fetch_Site="cross-site").status == 403, path
        assert anonymous.post(path, {"token": "ü"}).status == 403, path
    for path in admin_forms(key):
        assert admin.post(path, {"token": anonymous.token}).status == 403, path
        assert admin.post(path, {}, Sec_Fetch_Site="same-site").status == 403, path
        outside = anonymous.post(path, {})
        assert (outside.status, outside.headers.get("location")) == (303, "/admin/login"), path
    # A token of a page that everybody can see is none of the administrator's, even in the same browser.
    admin_token = admin.token
    admin.get("/recover")
    assert admin.token != admin_token
    assert admin.post("/admin/limits", {"per_mail": "1"}).status == 403
    admin.get("/admin")
    assert admin.token == admin_token
    assert environment.service.status(key) == state


def test_invalid_forms_are_rejected(environment: PagesEnvironment) -> None:
    """Bodies that are too large, of another type, or not text give an error page."""
    visitor = Visitor(environment.service)
    visitor.get("/recover")
    assert visitor.post("/recover", b"a=" + b"x" * 70_000).status == 413
    assert visitor.post("/recover", b"{}", Content_Type="application/json").status == 415
    assert visitor.post("/recover", b"token=%ff").status == 400
    assert visitor.post("/recover", b"\xff=1").status == 400
    assert visitor.post("/recover", b"&".join(b"a=1" for _ in range(400))).status == 400
    assert environment.service.request("PUT", "/recover", b"").status == 405
    assert b"<h1>" in environment.service.request("GET", "/recover/nowhere").body


def test_input_is_escaped(environment: PagesEnvironment, admin: Visitor) -> None:
    """In the form, on the pages of the job, and for administrators."""
    visitor = Visitor(environment.service)
    visitor.get("/recover")
    response = visitor.post("/recover", {"url": EVIL, "mail": EVIL, "name": EVIL, "at": EVIL, "when": "around"})
    assert response.status == 400
    assert b"<script>document" not in response.body
    assert b"49" not in response.body.replace(b"{{7*7}}", b"") or b"{{7*7}}" in response.body
    sent = visitor.post("/recover", {"url": f"lost.example/{EVIL}", "mail": "evil@example.org", "name": EVIL})
    assert sent.status == 303
    key = sent.headers["location"].rpartition("/")[2]
    number = key.partition("-")[0]
    pages = [visitor.get(path) for path in (sent.headers["location"], f"/jobs/{key}", f"/jobs/{key}/delete")]
    pages += [admin.get(path) for path in (f"/admin/jobs/{number}", "/admin?state=pending", "/admin/history")]
    for page in pages:
        assert page.status == 200
        assert b"<script>document" not in page.body
        assert b"<img src=x" not in page.body


def test_security_headers(environment: PagesEnvironment, key: str, admin: Visitor) -> None:
    """All pages have a policy, are not cached, and cannot be framed, sniffed or read by other sites."""
    for visitor, path in [
        (Visitor(environment.service), each)
        for each in ("/recover", "/privacy", f"/jobs/{key}", "/jobs/1-x", "/admin/login", f"/recover/sent/{key}")
    ] + [(admin, each) for each in ("/admin", "/admin/limits", "/admin/statistics")]:
        headers = visitor.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "'unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
        assert "strict-transport-security" not in headers, "there is no TLS here"
    session = admin.service.request("GET", "/admin/login").headers["set-cookie"].lower()
    assert "httponly" in session
    assert "samesite=strict" in session


FIELDS = (
    "url", "mail", "name", "what", "when", "at", "from", "to", "windows", "format", "archives", "look", "order",
    "password", "place", "worker", "back", "domain", "reason", "per_mail", "per_client", "per_address", "megabytes",
    "hours", "lang",
)  # fmt: skip
VALUES = (
    "", "0", "-1", "1", "99999999999999999999", "1e9", "٣", "yes", "site", "page", "around", "between", "2014", "20149",
    "zip", "wacz", "a", "b", "c" * 3_000, EVIL, "\x00", "\r\nSet-Cookie: x=y", "//evil.example", "/admin\\@evil",
    "/admin//evil.example", "http://[::1]/", "http://", "lost.example", "mailto:a@b", "a@example.org", "\udcff", "🜍",
    "../../x",
)  # fmt: skip


def test_fuzz(environment: PagesEnvironment, key: str, admin: Visitor) -> None:
    """Random forms never cause an internal error or a redirect to another site."""
    rng = random.Random(1208)  # noqa: S311
    anonymous = Visitor(environment.service)
    anonymous.get("/recover")
    mine = [path for path in public_forms(environment.service, key) if not path.endswith("/delete")]
    reference = [path for path in admin_forms(key) if not path.endswith(("/logout", "/delete"))]
    for number in range(300):
        visitor, path = (anonymous, rng.choice(mine)) if number % 2 else (admin, rng.choice(reference))
        pairs = []
        for _ in range(rng.randrange(1, 12)):
            random_text = "".join(rng.choices(string.printable, k=9))
            pairs.append((rng.choice(FIELDS), rng.choice([*VALUES, random_text])))
        response = visitor.post(path, pairs)
        assert response.status < 500, (number, path, pairs)
        assert response.status in (200, 303, 400, 404, 409, 429), (number, path, response.status)
        place_ = urlsplit(response.headers.get("location", "/"))
        assert (place_.scheme, place_.netloc) == ("", ""), (number, path)
        assert "\\" not in place_.path
        assert "x" not in visitor.cookies
        assert b"<script>document" not in response.body
    admin.get("/admin/limits")
    assert admin.post("/admin/limits", {each.name: "0" for each in fields(OrderLimits)}).status == 200
    for domain in ("a", "b", "lost.example", "evil.example", "1", "0"):
        admin.post("/admin/domains", {"what": "unblock", "domain": domain})
    assert "a fault of ours" not in "".join(environment.service.lines).lower()
    assert not any("a page failed" in line for line in environment.service.lines)
