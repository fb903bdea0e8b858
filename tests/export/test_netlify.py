"""Tests of the settings for Netlify against a model of its documentation."""

from tests.export import nasty_site
from tests.export.nasty_site import FILES, REDIRECTS, STUB_RING, STUBS
from tests.export.netlify_model import respond
from unlost.export import ExportedResource, hosting_files

FOUND = hosting_files(nasty_site.placed_resources())
WRITTEN = {name: FOUND[name].decode() for name in ("_redirects", "_headers")}
PATHS = {each.path for each in nasty_site.placed_resources() if each.path is not None}


def resolve(url: str) -> tuple[int, str, str | None]:
    """Return status, file and type for a URL of the nasty site."""
    found = respond(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], url)
    if found.status == 301:
        found = respond(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], found.to)
    return found.status, found.to, found.content_type


def test_old_urls_yield_their_files() -> None:
    """All except those that are listed as unsupported."""
    comments = [line for line in WRITTEN["_redirects"].splitlines() if line.startswith("#")]
    left = 0
    for each in FILES:
        if any(f"{nasty_site.HOST}{each.old} (" in line for line in comments):
            left += 1
            continue
        if "?" in each.old and not each.old.endswith(("id=1", "id=2", "v=2")):
            continue  # has another spelling in the comment
        status, path, content_type = resolve(each.old)
        assert (status, path) == (200, each.path), each.old
        if each.charset not in (None, "utf-8"):
            assert content_type == f"{each.mime}; charset={each.charset}"
    assert left >= 3


def test_redirects_lead_to_their_original_targets() -> None:
    """This holds for all redirects without a query."""
    for old, (_, to) in REDIRECTS.items():
        found = respond(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], old)
        assert (found.status, found.to) == (302, to.replace("Cookie:", "Cookie%3A")), old


def test_redirect_stubs_are_301_redirects() -> None:
    """Circular stubs are served as files."""
    for old, (_, _, expected) in STUBS.items():
        found = respond(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], old)
        assert (found.status, found.to) == (301, expected)
    for old, path in STUB_RING.items():
        assert resolve(old)[:2] == (200, path)


def test_wrong_file_extension_gets_a_content_type() -> None:
    """Under the file name and the old URL."""
    assert resolve("/lie.gif") == (200, "lie.gif", "image/png")
    assert resolve("/noending") == (200, "noending", "application/pdf")
    assert resolve("/true.gif") == (200, "true.gif", None)


def test_folder_is_not_redirected_to_itself() -> None:
    """Netlify ignores final slashes, so no redirect is needed."""
    files = hosting_files([ExportedResource("http://a.example/d", "d/index.html", "text/html")])
    assert [line for line in files["_redirects"].splitlines() if not line.startswith(b"#")] == []
