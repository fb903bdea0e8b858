"""The link at the end of emails is honoured, and unconfirmed orders are deleted in bulk."""

import re

from tests.service.jobs.serving import ORDER
from tests.service.pages.place import ADMIN, ADMIN_PASSWORD, Place
from tests.service.pages.visits import Visitor, log_in


def stop_link(place: Place, mail: str) -> str:
    """Return the path of the link in the email to a mail address."""
    (found,) = re.findall(r"http://127\.0\.0\.1:\d+(/mail/stop/\S+)", place.letter(mail, "Confirm"))
    return str(found)


def test_never_write_to_me_again(place: Place) -> None:
    """GET changes nothing; the button and one click (RFC 8058) do: orders are refused, in the form, too."""
    service, mail = place.service, "stop@stopping.example"
    key = service.ask("POST", "/api/jobs", {**ORDER, "mail": mail}).json["key"]
    link = stop_link(place, mail)
    assert service.ask("GET", link).status == 200
    assert service.status(key)["state"] == "pending"
    one_click = service.ask(
        "POST", link, b"List-Unsubscribe=One-Click", Content_Type="application/x-www-form-urlencoded"
    )
    assert one_click.status == 200
    assert service.status(key)["state"] == "removed"
    refused = service.ask("POST", "/api/jobs", {**ORDER, "mail": mail})
    assert refused.status == 400
    assert "wants no email" in refused.json["error"]
    visitor = Visitor(service)
    visitor.get("/recover")
    answer = visitor.post("/recover", {"url": "lost.example", "mail": mail})
    assert answer.status == 400
    assert b"wants no email" in answer.body
    visitor.get(link)
    assert visitor.post(f"{link}/undo", {}).status == 303
    assert service.ask("POST", "/api/jobs", {**ORDER, "mail": mail}).status == 201
    assert visitor.post(link, {}).status == 200
    assert service.ask("POST", "/api/jobs", {**ORDER, "mail": mail}).status == 400


def test_other_codes_unsubscribe_nobody(place: Place) -> None:
    """A code that is not of an email does nothing."""
    service, mail = place.service, "go-on@stopping.example"
    key = service.ask("POST", "/api/jobs", {**ORDER, "mail": mail}).json["key"]
    link = stop_link(place, mail)
    for wrong in (link[:-1], f"/mail/stop/{'0' * 64}-{link.rpartition('-')[2]}", "/mail/stop/x", "/mail/stop/%ff"):
        for method in ("GET", "POST"):
            assert service.ask(method, wrong).status == 404
    assert service.status(key)["state"] == "pending"


def test_unconfirmed_orders_are_deleted_in_bulk(place: Place) -> None:
    """By administrators alone: on the page of unconfirmed orders, and by the API."""
    service = place.service
    keys = [
        service.ask("POST", "/api/jobs", {**ORDER, "mail": f"{n}@s{n}.flooding.example"}).json["key"] for n in range(2)
    ]
    assert service.ask("DELETE", "/api/jobs?state=pending&mail_domain=flooding.example").status == 401
    assert service.ask("DELETE", "/api/jobs?mail_domain=flooding.example", is_admin=True).status == 400
    done = service.ask("DELETE", "/api/jobs?state=pending&mail_domain=flooding.example", is_admin=True)
    assert (done.status, done.json) == (200, {"deleted": 2})
    assert {service.status(key)["state"] for key in keys} == {"removed"}
    key = service.ask("POST", "/api/jobs", {**ORDER, "mail": "a@flooding.example"}).json["key"]
    admin = log_in(service, ADMIN, ADMIN_PASSWORD)
    assert b"Delete unconfirmed orders" in admin.get("/admin?state=pending").body
    assert admin.post("/admin/pending/delete", {"like": "x"}).status == 400
    assert admin.post("/admin/pending/delete", {"mail_domain": "flooding.example", "like": ""}).status == 303
    assert service.status(key)["state"] == "removed"
