"""The preview of a malicious site in a real browser."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.webui.environment import ADMIN, ADMIN_PASSWORD, PagesEnvironment, log_in, run_environment
from tests.webui.hostile import PAGES, hostile

pytestmark = pytest.mark.browser

_POLICIES = ("content-security-policy", "x-frame-options", "cross-origin-resource-policy", "cross-origin-opener-policy")


class _Others(BaseHTTPRequestHandler):
    """A foreign host that records requests."""

    requests: list[str] = []  # noqa: RUF012  one server for one test

    def do_GET(self) -> None:
        """Record a request."""
        self.requests.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def foreign_host() -> Iterator[int]:
    """Run a foreign host."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Others) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def evil(foreign_host: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PagesEnvironment, str]]:
    """Recover the malicious site; yield the environment and the URL of its page."""
    with run_environment(tmp_path_factory.mktemp("hostile"), hostile(foreign_host)) as environment:
        job = environment.service.request(
            "POST", "/api/jobs", {"url": "lost.example", "mail": "a@example.org"}, is_admin=True
        )
        done = environment.service.wait_until_ended(job.json["key"])
        assert done["progress"]["recovered"] == len(PAGES) + 2
        yield environment, f"{environment.service.base}/jobs/{job.json['key']}"


@pytest.fixture
def operator(browser: Browser, evil: tuple[PagesEnvironment, str]) -> Iterator[BrowserContext]:
    """Log in an administrator, with an additional cookie that scripts can read."""
    base = evil[0].service.base
    with browser.new_context() as context:
        log_in(context.new_page(), base, ADMIN, ADMIN_PASSWORD)
        # Otherwise the browser, and not our policy, would block other local ports.
        context.grant_permissions(["local-network-access"])
        context.add_cookies([{"name": "other", "value": "secret", "url": base}])
        yield context


def visit_all_pages(
    context: BrowserContext, preview: str, *, unsafely: bool = False, lets_frame: bool = False
) -> tuple[set[str], list[str]]:
    """Open every page of the preview; return what pages obtained, and requests outside of the preview.

    unsafely: with the policies of the preview taken away, as if we had forgotten them. lets_frame: with those of the
    pages of administrators removed, which forbid framing.
    """
    page = context.new_page()
    reached: list[str] = []
    folder = urlsplit(preview).path

    def bare(route: Route) -> None:
        answer = route.fetch()
        headers = {name: value for name, value in answer.headers.items() if name not in _POLICIES}
        route.fulfill(response=answer, headers=headers)

    # Requests blocked by the policy have no response: they are not sent.
    page.on("response", lambda answer: reached.append(urlsplit(answer.url).path))
    if unsafely:
        page.route(f"**{folder}**", bare)
    if lets_frame:
        page.route("**/admin", bare)
    for name in PAGES:
        page.goto("about:blank")
        page.goto(f"{preview}{name}.html", wait_until="commit")
        if name == "form" and not unsafely:
            page.get_by_role("button", name="Go").click()
        page.wait_for_load_state("networkidle")
    page.close()
    outside = [path for path in reached if not path.startswith(folder)]
    return {path.split("/")[2] for path in outside if path.startswith("/stolen/")}, outside


def preview_of(page: Page, preview_url: str) -> str:
    """Open the preview from the page of a job, and return the URL of the frame."""
    page.goto(preview_url)
    page.get_by_role("link", name="Preview").click()
    expect(page.frame_locator("iframe").get_by_text("script.html")).to_be_visible()
    source = page.locator("iframe").get_attribute("src")
    assert source is not None
    frame = page.frames[1].url
    return frame.rpartition("/")[0] + "/"


def test_hostile_site_is_sandboxed(operator: BrowserContext, evil: tuple[PagesEnvironment, str]) -> None:
    """Scripts, forms, frames, service workers, `//host` and refresh reach no page, cookie or other host."""
    environment, preview_url = evil
    preview = preview_of(operator.new_page(), preview_url)
    _Others.requests.clear()
    for lets_frame in (False, True):
        stolen, outside = visit_all_pages(operator, preview, lets_frame=lets_frame)
        assert (stolen, outside, _Others.requests) == (set(), [], [])
    assert environment.service.request("GET", "/health").status == 200
    # The control: the same pages, without the policy, do all of that.
    stolen, outside = visit_all_pages(operator, preview, unsafely=True, lets_frame=True)
    assert {"script", "cookie", "admin", "worker", "form", "refresh"} <= stolen
    assert "frame" in stolen, "the page of an administrator who is logged in was read in a frame"
    assert "/admin" in outside
    assert {each.partition("?")[0] for each in _Others.requests} >= {"/stolen/host.png", "/stolen/host.js"}


def test_preview_frame_cannot_navigate_away(operator: BrowserContext, evil: tuple[PagesEnvironment, str]) -> None:
    """Pages cannot navigate out of the frame and do not know the key of the job."""
    page = operator.new_page()
    preview = preview_of(page, evil[1])
    key = evil[1].rpartition("/")[2]
    assert key not in preview
    assert evil[0].service.request("GET", f"/jobs/{preview.split('/')[4]}").status == 404, "it opens the preview alone"
    assert evil[0].service.request("GET", f"/preview/{key}/").status == 404
    page.frame_locator("iframe").get_by_text("refresh.html").click()
    expect(page.frame_locator("iframe").get_by_text("page refresh")).to_be_visible()
    assert page.title() == "Preview of lost.example"
    for path in ("admin", "recover", "jobs/" + key):
        response = evil[0].service.request("GET", f"/{path}")
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert "access-control-allow-origin" not in response.headers
    gone = evil[0].service.request("GET", urlsplit(preview).path + "nothing.html")
    assert (gone.status, gone.headers["content-security-policy"].startswith("sandbox;")) == (404, True)
