"""Unsubscribe links, and deletion of unconfirmed orders in bulk."""

import re

from tests.jobs.service_process import ORDER
from tests.webui.environment import ADMIN, ADMIN_PASSWORD, PagesEnvironment
from tests.webui.visitor import Visitor, log_in


def stop_link(environment: PagesEnvironment, mail: str) -> str:
    """Return the path of the unsubscribe link in an email."""
    (found,) = re.findall(r"http://127\.0\.0\.1:\d+(/mail/stop/\S+)", environment.wait_for_mail(mail, "Confirm"))
    return str(found)


def test_unsubscribe_and_resubscribe(environment: PagesEnvironment) -> None:
    """GET changes nothing; the button and one click (RFC 8058) unsubscribe, and orders are rejected."""
    service, mail = environment.service, "stop@stopping.example"
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": mail}).json["key"]
    link = stop_link(environment, mail)
    assert service.request("GET", link).status == 200
    assert service.status(key)["state"] == "pending"
    one_click = service.request(
        "POST", link, b"List-Unsubscribe=One-Click", Content_Type="application/x-www-form-urlencoded"
    )
    assert one_click.status == 200
    assert service.status(key)["state"] == "removed"
    refused = service.request("POST", "/api/jobs", {**ORDER, "mail": mail})
    assert refused.status == 400
    assert "wants no email" in refused.json["error"]
    visitor = Visitor(service)
    visitor.get("/recover")
    response = visitor.post("/recover", {"url": "lost.example", "mail": mail})
    assert response.status == 400
    assert b"has unsubscribed from our emails" in response.body
    visitor.get(link)
    assert visitor.post(f"{link}/undo", {}).status == 303
    assert service.request("POST", "/api/jobs", {**ORDER, "mail": mail}).status == 201
    assert visitor.post(link, {}).status == 200
    assert service.request("POST", "/api/jobs", {**ORDER, "mail": mail}).status == 400


def test_invalid_codes_are_rejected(environment: PagesEnvironment) -> None:
    """Codes that were not issued have no effect."""
    service, mail = environment.service, "go-on@stopping.example"
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": mail}).json["key"]
    link = stop_link(environment, mail)
    for wrong in (link[:-1], f"/mail/stop/{'0' * 64}-{link.rpartition('-')[2]}", "/mail/stop/x", "/mail/stop/%ff"):
        for method in ("GET", "POST"):
            assert service.request(method, wrong).status == 404
    assert service.status(key)["state"] == "pending"


def test_bulk_deletion_of_unconfirmed_orders(environment: PagesEnvironment) -> None:
    """By administrators only, on a page and by the API."""
    service = environment.service
    keys = [
        service.request("POST", "/api/jobs", {**ORDER, "mail": f"{n}@s{n}.flooding.example"}).json["key"]
        for n in range(2)
    ]
    assert service.request("DELETE", "/api/jobs?state=pending&mail_domain=flooding.example").status == 401
    assert service.request("DELETE", "/api/jobs?mail_domain=flooding.example", is_admin=True).status == 400
    done = service.request("DELETE", "/api/jobs?state=pending&mail_domain=flooding.example", is_admin=True)
    assert (done.status, done.json) == (200, {"deleted": 2})
    assert {service.status(key)["state"] for key in keys} == {"removed"}
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": "a@flooding.example"}).json["key"]
    admin = log_in(service, ADMIN, ADMIN_PASSWORD)
    assert b"Delete unconfirmed jobs" in admin.get("/admin?state=pending").body
    assert admin.post("/admin/pending/delete", {"like": "x"}).status == 400
    assert admin.post("/admin/pending/delete", {"mail_domain": "flooding.example", "like": ""}).status == 303
    assert service.status(key)["state"] == "removed"
