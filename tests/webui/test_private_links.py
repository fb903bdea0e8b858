"""Private links are not leaked or guessed, also behind TLS."""

import http.client
import json
from pathlib import Path

from tests.jobs.service_process import ORDER, run_service
from tests.webui.environment import PagesEnvironment
from tests.webui.visitor import Visitor


def test_private_links_are_not_leaked(environment: PagesEnvironment) -> None:
    """Neither the log nor the event stream contains a key."""
    service = environment.service
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": "private@example.org"}).json["key"]
    link = environment.link("private@example.org").removeprefix(service.base)
    stream = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    stream.request("GET", "/monitor", headers={"Authorization": f"Bearer {service.token}"})
    events = stream.getresponse()
    paths = (link, f"/jobs/{key}", f"/jobs/{key}/preview", f"/api/jobs/{key}", f"/recover/sent/{key}", "/recover?url=x")
    for path in paths:
        service.request("GET", path)
    seen: list[str] = []
    while len(seen) < len(paths):
        line = events.readline().decode()
        if line.startswith("data: ") and json.loads(line.removeprefix("data: "))["endpoint"] == "jobs":
            seen.append(line)
    stream.close()
    secrets = [key.partition("-")[2], link.rpartition("/")[2].partition("-")[2]]
    assert all(len(each) == 43 for each in secrets)
    assert not [line for line in (*seen, *service.lines) if any(each in line for each in secrets)]


def test_event_stream_requires_an_admin_token(environment: PagesEnvironment) -> None:
    """Where jobs are served, neither anonymous users nor owners may read it."""
    service = environment.service
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": "watch@example.org"}).json["key"]
    for sent in ("", "Bearer x", f"Bearer {key}", "Basic x"):
        response = service.request("HEAD", "/monitor", Authorization=sent)
        assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
        assert "access-control-allow-origin" not in response.headers
    stream = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    stream.request("GET", "/monitor")
    assert stream.getresponse().status == 401
    stream.close()
    assert service.request("HEAD", "/monitor", is_admin=True).status == 200


def test_invalid_links_are_rejected(environment: PagesEnvironment) -> None:
    """Keys for other purposes or jobs, and modified keys, give an error page."""
    service = environment.service
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": "guess@example.org"}).json["key"]
    code = environment.link("guess@example.org").rpartition("/")[2]
    number, _, secret = key.partition("-")
    wrong = [
        f"{int(number) + 1}-{secret}",
        key[:-1] + ("A" if key[-1] != "A" else "B"),
        code,
        number,
        "x",
        f"{number}-",
    ]
    for each in wrong:
        for path in (f"/jobs/{each}", f"/jobs/{each}/report", f"/jobs/{each}/preview", f"/preview/{each}/index.html"):
            assert service.request("GET", path).status == 404, path
    for each in ("%ff", "%0d%0aX-Evil:%201", "a;script-src%20*"):
        assert service.request("GET", f"/preview/{each}/").status == 404, each
    assert service.request("GET", f"/jobs/confirm/{key}").status == 404
    visitor = Visitor(service)
    visitor.get("/recover")
    assert visitor.post(f"/jobs/{wrong[1]}/cancel", {}).status == 404
    assert service.status(key)["state"] == "pending"


def test_secure_cookies_and_hsts_behind_tls(environment: PagesEnvironment, tmp_path: Path) -> None:
    """With https, cookies are Secure and HSTS is sent."""
    registry = environment.lost.registry(tmp_path)
    with run_service(tmp_path, registry, "--root", "https://recover.example.org", "--workers", "0") as service:
        for path in ("/recover", "/admin/login", "/about"):
            headers = service.request("GET", path).headers
            assert headers["strict-transport-security"].startswith("max-age=")
        assert "secure" in service.request("GET", "/recover").headers["set-cookie"].lower()


def test_language_negotiation(environment: PagesEnvironment) -> None:
    """The browser's language is used unless another was selected, which is stored."""
    visitor = Visitor(environment.service)
    assert b"wiederherstellen" in visitor.get("/recover", Accept_Language="de-AT, en;q=0.5").body
    assert b'lang="en"' in visitor.get("/recover", Accept_Language="fr").body
    assert b'lang="de"' in visitor.get("/privacy?lang=de", Accept_Language="en").body
    assert b'lang="de"' in visitor.get("/", Accept_Language="en").body
    assert (
        b'<html lang="en"' in visitor.get("/recover?lang=xx%22%3E").body or visitor.cookies["unlost_language"] == "de"
    )


def test_language_links_retain_the_query(environment: PagesEnvironment) -> None:
    """The search or order is the same in the other language."""
    visitor = Visitor(environment.service)
    for path in ("/recover?url=a%26b", "/?uri=http://lost.example/&year=2011", "/about?format=html"):
        begin, _, query = path.partition("?")
        page = visitor.get(f"{begin}?lang=de&{query}", Accept_Language="en").body.decode()
        assert f'<a href="{begin}?{query.replace("&", "&amp;")}&amp;lang=en" lang="en"' in page
    assert '<a href="/privacy?lang=en"' in visitor.get("/privacy").body.decode()


def test_private_hosts_are_rejected(environment: PagesEnvironment) -> None:
    """By the form, with an explanation, and by the API."""
    visitor = Visitor(environment.service)
    visitor.get("/recover")
    form = {"url": "http://192.168.0.1/", "mail": "me@example.org", "what": "site", "when": "newest"}
    page = visitor.post("/recover", form, Accept_Language="en")
    assert (page.status, b"on a private network" in page.body) == (400, True)
    response = environment.service.request("POST", "/api/jobs", {**ORDER, "url": "http://localhost/"})
    assert (response.status, "public site" in response.json["error"]) == (400, True)


def test_report_has_the_language_of_the_visitor(environment: PagesEnvironment) -> None:
    """The browser's or the selected one; packages have none."""
    service = environment.service
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": "report@example.org"}, is_admin=True).json["key"]
    assert service.wait_until_ended(key)["state"] == "complete"
    path = f"/jobs/{key}/report"
    visitor = Visitor(service)
    expected = (("en", "en", "resources recovered."), ("de-CH, en;q=0.5", "de", "Dateien wiederhergestellt."))
    for accepted, language, phrase in expected:
        response = visitor.get(path, Accept_Language=accepted)
        text = response.body.decode()
        assert (response.status, response.headers["content-language"]) == (200, language)
        assert phrase in text
        assert text.startswith(f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">'), (
            "also if it is opened after it was saved"
        )
        assert "script-src" not in response.headers["content-security-policy"]
    assert "in English" not in visitor.get(f"/jobs/{key}", Accept_Language="en").body.decode()
    english = service.request("GET", f"/api/jobs/{key}", Accept_Language="en")
    assert service.request("GET", f"/api/jobs/{key}", Accept_Language="de").body == english.body
    assert b'<html lang="de">' in visitor.get(f"{path}?lang=de", Accept_Language="en").body
    assert b'<html lang="de">' in visitor.get(path, Accept_Language="en").body, "the choice is stored"
    assert visitor.get(f"{path}?lang=%22%3E%3Cscript%3E").headers["content-language"] == "de"


def test_emails_in_german(environment: PagesEnvironment) -> None:
    """An order on a German page gives German emails with links to German pages."""
    visitor = Visitor(environment.service)
    visitor.get("/recover")
    visitor.get("/recover?lang=de")
    sent = visitor.post("/recover", {"url": "lost.example", "mail": "deutsch@example.org", "name": "Jörg"})
    assert sent.status == 303
    text = environment.wait_for_mail("deutsch@example.org", "Bitte bestätigen")
    assert "Guten Tag," in text
    anonymous = Visitor(environment.service)
    link = environment.link("deutsch@example.org", "Bitte bestätigen").removeprefix(environment.service.base)
    assert link.endswith("?lang=de")
    assert "Bestätigen und starten" in anonymous.get(link).body.decode()


def test_owner_key_does_not_confirm_an_order(environment: PagesEnvironment) -> None:
    """An order that was cancelled before its confirmation cannot be retried, by page or API."""
    service = environment.service
    key = service.request("POST", "/api/jobs", {**ORDER, "mail": "bypass@example.org"}).json["key"]
    visitor = Visitor(service)
    visitor.get(f"/jobs/{key}")
    assert visitor.post(f"/jobs/{key}/cancel", {}).status == 303
    assert f"/jobs/{key}/retry".encode() not in visitor.get(f"/jobs/{key}").body
    assert visitor.post(f"/jobs/{key}/retry", {}).status == 409
    assert service.request("POST", f"/api/jobs/{key}/retry").status == 409
    assert service.status(key)["state"] == "cancelled"


def test_owner_deletes_a_job(environment: PagesEnvironment) -> None:
    """In any state, at once: files, name and email address are deleted, and the link is invalid."""
    service = environment.service
    job = service.request("POST", "/api/jobs", {**ORDER, "mail": "gone@example.org"}, is_admin=True).json
    assert service.wait_until_ended(job["key"])["state"] == "complete"
    folder = service.folder / "jobs" / "work" / f"{job['number']:08d}"
    assert folder.exists()
    visitor = Visitor(service)
    page = visitor.get(f"/jobs/{job['key']}/delete")
    assert page.status == 200
    assert folder.exists(), "to look at it deletes nothing"
    assert visitor.post(f"/jobs/{job['key']}/delete", {}).status == 200
    assert not folder.exists()
    assert visitor.get(f"/jobs/{job['key']}").status == 404
    left = service.request("GET", f"/api/jobs/{job['number']}", is_admin=True).json
    assert (left["state"], left["mail"], left["name"], left["packages"]) == ("removed", "", "", [])
