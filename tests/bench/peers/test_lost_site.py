"""Tests of the lost site: it is deterministic, and each resource has the difficulty of its kind."""

import gzip

from bench.peers.lost_site import CDN, HOME, Resource, Site, make_lost_site

from tests.external.wayback_cdx import StoredCapture


def captures(site: Site, resource: Resource) -> list[StoredCapture]:
    """Return the captures of a resource by date."""
    return sorted((row for row in site.captures if row.original == resource.uri), key=lambda row: row.timestamp)


def test_site_is_deterministic() -> None:
    """Two sites are equal."""
    assert make_lost_site(2) == make_lost_site(2)
    assert len(make_lost_site(2).resources) > len(make_lost_site(1).resources)


def test_correct_body_can_be_fetched() -> None:
    """Every resource has a good capture with the correct body, whose transfer can succeed."""
    site = make_lost_site(2)
    assert len({resource.uri for resource in site}) == len(site.resources)
    for resource in site:
        good = [row for row in captures(site, resource) if row.statuscode == 200]
        bodies = {
            gzip.decompress(row.body) if row.coding else row.body
            for row in good
            if (trouble := site.faults.get((row.timestamp, row.original))) is None or trouble.times is not None
        }
        assert resource.body in bodies
        assert resource.body not in resource.other_bodies


def test_last_captures_match_the_kind() -> None:
    """The last captures have the fault that the kind names."""
    site = make_lost_site(1)
    last = {resource.kind: captures(site, resource)[-1] for resource in site}
    assert last["a 404 since"].statuscode == 404
    assert last["a redirect to the home page since"].location == "/"
    assert b"not found" in last["a soft 404 since"].body
    assert b"for sale" in last["parked since"].body
    assert (last["last capture is a revisit"].mimetype, last["last capture is a revisit"].statuscode) == (
        "warc/revisit",
        None,
    )
    assert last["stored gzipped"].body[:2] == b"\x1f\x8b"
    assert last["letter case"].urlkey == last["letter case, the other"].urlkey
    assert len(last["long name"].original) > 255
    assert "charset=windows-1251" in dict(last["legacy charset"].headers)["Content-Type"]
    assert {trouble.kind for trouble in site.faults.values()} == {"cut", "503"}
    assert make_lost_site(1, is_calm=True).faults == {}


def test_everything_is_linked_from_the_home_page() -> None:
    """All pages are reachable by links, which have three forms."""
    site = make_lost_site(2)
    home = next(resource for resource in site if resource.uri == HOME).body.decode()
    for resource in site:
        if resource.mime == "text/html" and resource.uri != HOME:
            assert resource.uri.removeprefix(HOME).replace("&", "&amp;") in home
    assert 'href="/' in home
    assert f'href="{HOME}' in home
    assert 'href="crew/' in home


def test_pages_need_files_of_another_host() -> None:
    """A style sheet, a script, fonts and pictures are on a CDN; pages or its style sheet name all of them."""
    site = make_lost_site(2)
    files = [resource for resource in site if resource.uri.startswith(f"http://{CDN}/")]
    assert {file.mime for file in files} == {"text/css", "text/javascript", "font/woff2", "font/woff", "image/png"}
    assert 0 < sum("?" in file.uri for file in files) < len(files)
    home = next(resource for resource in site if resource.uri == HOME).body.decode()
    theme = next(file for file in files if file.mime == "text/css").body.decode()
    for file in files:
        assert file.uri.removeprefix("http:") in home or file.uri.rpartition("/")[2] in theme
    pages = [resource.body.decode("latin-1") for resource in site if resource.mime == "text/html"]
    assert all(f"//{CDN}/" in page for page in pages)
    assert any(f'"//{CDN}/' in page for page in pages)
