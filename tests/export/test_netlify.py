"""The files for Netlify, by a model of what its documentation says: there is no server of it to ask."""

from tests.export import nasty_site
from tests.export.nasty_site import FILES, REDIRECTS, STUB_RING, STUBS
from tests.export.netlify_model import ask
from unlost.export import ExportedResource, hosting_files

FOUND = hosting_files(nasty_site.placed())
WRITTEN = {name: FOUND[name].decode() for name in ("_redirects", "_headers")}
PATHS = {each.path for each in nasty_site.placed() if each.path is not None}


def show(address: str) -> tuple[int, str, str | None]:
    """Return status, file and type that are shown for an address of the nasty site."""
    found = ask(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], address)
    if found.status == 301:
        found = ask(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], found.to)
    return found.status, found.to, found.content_type


def test_old_addresses_give_their_files() -> None:
    """All but those that are named as left out."""
    comments = [line for line in WRITTEN["_redirects"].splitlines() if line.startswith("#")]
    left = 0
    for each in FILES:
        if any(f"{nasty_site.HOST}{each.old} (" in line for line in comments):
            left += 1
            continue
        if "?" in each.old and not each.old.endswith(("id=1", "id=2", "v=2")):
            continue  # spelled otherwise in the comment
        status, path, told = show(each.old)
        assert (status, path) == (200, each.path), each.old
        if each.charset not in (None, "utf-8"):
            assert told == f"{each.mime}; charset={each.charset}"
    assert left >= 3


def test_redirects_lead_where_they_led() -> None:
    """All that have no query."""
    for old, (_, to) in REDIRECTS.items():
        found = ask(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], old)
        assert (found.status, found.to) == (302, to.replace("Cookie:", "Cookie%3A")), old


def test_stubs_are_redirects() -> None:
    """With status 301, whatever file is there; those that lead to each other are shown."""
    for old, (_, _, expected) in STUBS.items():
        found = ask(PATHS, WRITTEN["_redirects"], WRITTEN["_headers"], old)
        assert (found.status, found.to) == (301, expected)
    for old, path in STUB_RING.items():
        assert show(old)[:2] == (200, path)


def test_what_lies_about_its_type_gets_a_header() -> None:
    """Under the name of the file, and under its old address."""
    assert show("/lie.gif") == (200, "lie.gif", "image/png")
    assert show("/noending") == (200, "noending", "application/pdf")
    assert show("/true.gif") == (200, "true.gif", None)


def test_a_folder_is_no_redirect_to_itself() -> None:
    """Slashes at the end make no difference to Netlify, so there is nothing to be redirected."""
    files = hosting_files([ExportedResource("http://a.example/d", "d/index.html", "text/html")])
    assert [line for line in files["_redirects"].splitlines() if not line.startswith(b"#")] == []
