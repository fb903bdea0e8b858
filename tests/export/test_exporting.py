"""Tests of what an export holds: the right files, links that lead to them, and every other byte as it was."""

import gzip
from pathlib import Path

import pytest

from tests.export.sample_recoveries import DATE, ROOT, Copy, MemoryTarget, exported, recovered
from tests.html.stub_pages import HUGO, JEKYLL, MKDOCS, MOVED, SCRIPTED
from tests.recover.running import Run
from tests.recover.stubs import Held, Stub
from unlost.errors import InputError
from unlost.export import EMPTY_IMAGE_URL, MANIFEST_NAME, ExportOptions, ExternalLinks, export_site, read_manifest
from unlost.recover import RecoverOptions
from unlost.recover.state import StateReader

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
BANNER = b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->x<!-- END WAYBACK TOOLBAR INSERT -->"


def page_of(
    folder: Path, body: bytes, *others: Copy, wanted: ExportOptions | None = None, plan: RecoverOptions | None = None
) -> bytes:
    """Return the front page of a site after its export."""
    files, _ = exported(recovered(folder / "r", [Copy(ROOT, body), *others], plan), wanted)
    return files["index.html"]


def test_links_of_every_kind(tmp_path: Path) -> None:
    """Attributes, sets of images, styles, refreshes and style sheets lead to the files; the rest stays."""
    page = (
        b'<!DOCTYPE html>\n<HTML><base href="http://lost.example/d/">'
        b"<link rel=stylesheet href='../s.css' integrity=x>\n"
        b'<meta http-equiv=refresh content="5; url=/next"><style>p { background: url("../i.png?a#b") }</style>\n'
        b'<p style="background:url(/i.png?a)"><a  HREF = page.php?id=1&amp;x#top >x</a>'
        b'<img srcset="/i.png?a 1x, /i.png?b 2x"> &amp; <!-- <a href="/next"> -->'
        b'<svg><image xlink:href="/i.png?a"/></svg><a href="mailto:me@lost.example">m</a></HTML>'
    )
    files, done = exported(
        recovered(
            tmp_path / "r",
            [
                Copy(ROOT, page),
                Copy(f"{ROOT}s.css", b'@import "t.css"; p{background:url( i.png?a )}', "text/css"),
                Copy(f"{ROOT}t.css", b"", "text/css"),
                Copy(f"{ROOT}i.png?a", PNG, "image/png"),
                Copy(f"{ROOT}i.png?b", PNG, "image/png"),
                Copy(f"{ROOT}next", b"next"),
                Copy(f"{ROOT}d/page.php?id=1&x", b"<a href='../s.css'>"),
            ],
        )
    )
    assert files["index.html"] == (
        b"<!DOCTYPE html>\n<HTML><base data-href=\"http://lost.example/d/\"><link rel=stylesheet href='s.css'"
        b' data-integrity=x>\n<meta http-equiv=refresh content="5; url=next.html">'
        b'<style>p { background: url("i.png-a.png#b") }</style>\n'
        b'<p style="background:url(i.png-a.png)"><a  HREF = d/page.php-id=1%26x.html#top >x</a>'
        b'<img srcset="i.png-a.png 1x, i.png-b.png 2x"> &amp; <!-- <a href="/next"> -->'
        b'<svg><image xlink:href="i.png-a.png"/></svg><a href="mailto:me@lost.example">m</a></HTML>'
    )
    assert files["s.css"] == b'@import "t.css"; p{background:url( i.png-a.png )}'
    assert files["d/page.php-id=1&x.html"] == b"<a href='../s.css'>"
    assert files["i.png-a.png"] == PNG
    assert done.files == 7
    assert done.links["missing"] == 0
    assert done.start == "index.html"


def test_attributes_of_lazy_loading(tmp_path: Path) -> None:
    """They are rewritten as `src`, `srcset` and `style` are, also where the file is missing."""
    page = (
        b"<img data-lazy-src=/i.png?a data-lazy-srcset='/i.png?a 1x, /gone.png 2x'><p data-bg='url(/i.png?a)'>"
        b"<p data-bg=red><p data-background-image='/i.png?a'><img data-original=/i.png?a data-src=/gone.png>"
    )
    other = Copy(f"{ROOT}i.png?a", PNG, "image/png")
    assert page_of(tmp_path, page, other) == (
        b"<img data-lazy-src=i.png-a.png data-lazy-srcset='i.png-a.png 1x, gone.png 2x'><p data-bg='url(i.png-a.png)'>"
        b"<p data-bg=red><p data-background-image='i.png-a.png'><img data-original=i.png-a.png data-src=gone.png>"
    )


def test_what_scripts_use_is_rewritten_if_there_is_a_file(tmp_path: Path) -> None:
    """Data attributes, event handlers and navigations get the path of the file; nothing else in scripts changes."""
    page = (
        b"<body onload=\"load('header', '/g/header.html')\" data-next='http://lost.example/next' data-tab=next>"
        b"<p data-x=/gone.html data-y='g/header.html' onclick=\"location='/next'; open('/gone.html')\">"
        b"<a onclick='location.href=&quot;/next&quot;' data-out=http://out.example/next>"
        b"<script>location.replace(\"/next\"); load('/g/header.html'); page = '/next'; location = '/gone'</script>"
    )
    others = (
        Copy(f"{ROOT}g/header.html", b"<a data-home='/'  data-x='/next' onclick=\"x('header.html')\">"),
        Copy(f"{ROOT}next", b"x"),
    )
    files, done = exported(recovered(tmp_path / "r", [Copy(ROOT, page), *others]))
    assert files["index.html"] == (
        b"<body onload=\"load('header', 'g/header.html')\" data-next='next.html' data-tab=next>"
        b"<p data-x=/gone.html data-y='g/header.html' onclick=\"location='next.html'; open('/gone.html')\">"
        b"<a onclick='location.href=&quot;next.html&quot;' data-out=http://out.example/next>"
        b"<script>location.replace(\"next.html\"); load('/g/header.html'); page = '/next'; location = '/gone'</script>"
    )
    assert files["g/header.html"] == b"<a data-home='/'  data-x='../next.html' onclick=\"x('header.html')\">"
    assert done.links["missing"] == 0


@pytest.mark.parametrize("stub", [JEKYLL, MKDOCS, HUGO, MOVED, SCRIPTED])
def test_stubs_are_pages_with_other_links(tmp_path: Path, stub: str) -> None:
    """A page that does nothing but redirect leads to the file of its target, by refresh, script and link alike."""
    copies = [Copy(ROOT, b"home"), Copy(f"{ROOT}old", stub.format(url="/new/").encode()), Copy(f"{ROOT}new/", b"new")]
    files, _ = exported(recovered(tmp_path / "r", copies))
    expected = stub.format(url="new/index.html")
    if stub is HUGO:
        expected = expected.replace("<title>new/index.html", "<title>/new/")
    assert files["old.html"].decode() == expected


def test_stubs_are_redirects_where_they_are_hosted(tmp_path: Path) -> None:
    """There is a rule for each whose target was recovered, or is elsewhere, beside its file; others are shown."""
    targets = {"old": "/new", "gone": "/never", "away": "http://else.example/x", "self": "/self", "loop": "/old-loop"}
    stubs = [Copy(ROOT + path, HUGO.format(url=to).encode()) for path, to in targets.items()]
    moved = Copy(f"{ROOT}new", status=301, location="/newest/", mime=None)
    back = Copy(f"{ROOT}old-loop", HUGO.format(url="/loop").encode())
    text = Copy(f"{ROOT}text", JEKYLL.format(url="/newest/").encode(), "text/plain")
    copies = [Copy(ROOT, b"home"), *stubs, moved, back, text, Copy(f"{ROOT}newest/", b"new")]
    files, _ = exported(recovered(tmp_path / "r", copies), ExportOptions(hosting=True))
    rules = [line.split() for line in files["_redirects"].decode().splitlines() if not line.startswith("#")]
    found = {rule[0]: rule[1:] for rule in rules if rule}
    assert {"old.html", "gone.html", "away.html", "self.html", "loop.html", "old-loop.html"} <= files.keys()
    assert found["/old"] == ["/newest/", "301!"]
    assert found["/away"] == ["http://else.example/x", "301!"]
    assert [found[f"/{name}"] for name in ("gone", "self", "loop", "old-loop")] == [
        [f"/{name}.html", "200!"] for name in ("gone", "self", "loop", "old-loop")
    ]
    assert "301!" not in found.get("/text", [])


def test_hard_letters_in_names(tmp_path: Path) -> None:
    """Percent signs, question marks, hashes, blanks and letters of any script in names are escaped in links."""
    page = b'<a href="/100%25.html"><a href="/a%3Fb%23c.html"><a href="/caf%C3%A9%20x.html"><a href="/File:y">'
    uris = ("100%25.html", "a%3Fb%23c.html", "caf%C3%A9%20x.html", "File:y")
    files, _ = exported(recovered(tmp_path / "r", [Copy(ROOT, page), *(Copy(ROOT + uri, b"x") for uri in uris)]))
    assert {"100%.html", "a-b#c.html", "café x.html", "File:y.html"} < set(files)
    assert files["index.html"] == (
        b'<a href="100%25.html"><a href="a-b%23c.html"><a href="caf%C3%A9%20x.html"><a href="File%3Ay.html">'
    )


def test_redirects_are_followed_and_loops_end(tmp_path: Path) -> None:
    """A link to an address that redirects leads to the last target; one into a loop to where its file would be."""
    page = b'<a href="/old"><a href="/older"><a href="/loop"><a href="/away"><a href="/lost">'
    new = page_of(
        tmp_path,
        page,
        Copy(f"{ROOT}new.html", b"new"),
        Copy(f"{ROOT}old", status=301, location="/new.html"),
        Copy(f"{ROOT}older", status=302, location="old"),
        Copy(f"{ROOT}loop", status=302, location="/loop2"),
        Copy(f"{ROOT}loop2", status=302, location="/loop"),
        Copy(f"{ROOT}away", status=302, location="http://other.example/x"),
        Copy(f"{ROOT}lost", status=302, location="/gone.html"),
    )
    assert new == (
        b'<a href="new.html"><a href="new.html"><a href="loop.html"><a href="http://other.example/x">'
        b'<a href="gone.html">'
    )


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("javascript:alert(1)", b"r.html"),
        ("data:text/html,<script>", b"r.html"),
        ("file:///etc/passwd", b"r.html"),
        ("http://[", b"r.html"),
        ("//evil.example/\r\nSet-Cookie: a", b"http://evil.example/Set-Cookie:%20a"),
        ("http://evil.example/\udce4\ud800", b"http://evil.example/%ED%B3%A4%ED%A0%80"),
        ("/\\evil.example", b"evil.example.html"),
    ],
)
def test_redirects_that_are_none(tmp_path: Path, location: str, expected: bytes) -> None:
    """A link leads to where the file of the redirect would be, or to an address of the web and nothing else."""
    for wanted in (ExportOptions(hosting=True), ExportOptions()):
        folder = tmp_path / str(wanted.hosting)
        redirect = Copy(f"{ROOT}r", status=302, location=location)
        assert page_of(folder, b'<a href="/r">', redirect, wanted=wanted) == b'<a href="%b">' % expected


def test_every_spelling_finds_the_page(tmp_path: Path) -> None:
    """Schemes, `www`, default pages, missing slashes, session ids and aliases make no difference."""
    page = (
        b'<a href="https://www.lost.example/a"><a href="/a/index.html"><a href="//LOST.example:80/a/">'
        b'<a href="/a/?sid=0123456789abcdef0123456789abcdef"><a href="/Other/Name.HTML"><a href="/sub/">'
    )
    folder = recovered(
        tmp_path / "r",
        [Copy(ROOT, page), Copy(f"{ROOT}a/", b"a"), Copy(f"{ROOT}sub/default.asp", b"d")],
        aliases=[(f"{ROOT}Other/Name.HTML", f"{ROOT}a/"), (f"{ROOT}sub/", f"{ROOT}sub/default.asp")],
    )
    files, _ = exported(folder)
    assert files["index.html"] == b'<a href="a/index.html">' * 5 + b'<a href="sub/index.html">'


def test_letter_case_is_ignored_where_it_was(tmp_path: Path) -> None:
    """With `--ignore-case` a recovery has one page for both spellings, and so has its export."""
    page = page_of(
        tmp_path, b'<a href="/ABOUT.html">', Copy(f"{ROOT}about.html"), plan=RecoverOptions(ROOT, ignore_case=True)
    )
    assert page == b'<a href="about.html">'


def test_what_is_missing_points_to_where_it_would_be(tmp_path: Path) -> None:
    """Nothing leaves the machine, and a file that is put there later is found."""
    page = b'<a href="/gone"><a href="/gone.pdf"><img src="/gone.gif"><a href="page">'
    files, done = exported(recovered(tmp_path / "r", [Copy(ROOT, page), Copy(f"{ROOT}page.html", b"other")]))
    assert files["index.html"].startswith(b'<a href="gone.html"><a href="gone.pdf"><img src="gone.gif"><a href="page~')
    assert done.links["missing"] == 4


def test_a_folder_is_a_site_of_its_own(tmp_path: Path) -> None:
    """Where a folder was recovered, other pages of its host are outside, in full; parts of its pages are not."""
    body = b'<a href="/joe/a"><a href="/ann/#x"><img src="/logo.gif">'
    files, done = exported(recovered(tmp_path / "r", [Copy(f"{ROOT}joe/", body)], RecoverOptions(f"{ROOT}joe/")))
    assert files["joe/index.html"] == b'<a href="a.html"><a href="http://lost.example/ann/#x"><img src="../logo.gif">'
    assert done.start == "joe/index.html"


@pytest.mark.parametrize("page", ["http://lost.example:80/joe/", "http://WWW.Lost.example/joe/"])
def test_whatever_way_the_host_is_spelled(tmp_path: Path, page: str) -> None:
    """What is outside on the page's own host is written in full, also if its capture spells the host otherwise."""
    files, _ = exported(recovered(tmp_path / "r", [Copy(page, b'<a href="/ann/">')], RecoverOptions(f"{ROOT}joe/")))
    assert b"lost.example/ann/" in files["joe/index.html"]


OUTSIDE = b'<a href="http://b.example/?x=1&amp;y#f">b</a><img src="//b.example/i.png"><a href="/">'


@pytest.mark.parametrize(
    ("external", "urim", "expected"),
    [
        (ExternalLinks.KEEP, None, (b"http://b.example/?x=1&amp;y#f", b"//b.example/i.png")),
        (ExternalLinks.NONE, None, (b"http://b.example/?x=1&amp;y#f", EMPTY_IMAGE_URL.encode())),
        (
            ExternalLinks.ARCHIVE,
            None,
            (
                f"https://web.archive.org/web/{DATE}/http://b.example/?x=1&amp;y#f".encode(),
                f"https://web.archive.org/web/{DATE}/http://b.example/i.png".encode(),
            ),
        ),
        (
            ExternalLinks.ARCHIVE,
            "http://arc.example/all/20140210000001id_/http://lost.example/",
            (
                f"http://arc.example/all/{DATE}/http://b.example/?x=1&amp;y#f".encode(),
                f"http://arc.example/all/{DATE}/http://b.example/i.png".encode(),
            ),
        ),
    ],
)
def test_links_that_lead_away(
    tmp_path: Path, external: ExternalLinks, urim: str | None, expected: tuple[bytes, bytes]
) -> None:
    """They are left alone, or point at the archive of the page, or nothing is loaded by them."""
    folder = recovered(tmp_path / "r", [Copy(ROOT, OUTSIDE, urim=urim)])
    files, done = exported(folder, ExportOptions(external=external))
    assert files["index.html"] == b'<a href="%b">b</a><img src="%b"><a href="index.html">' % expected
    assert done.links["outside"] == 2


def test_parts_on_other_hosts_that_came_back(tmp_path: Path) -> None:
    """They are in a folder of their host; other pages there are still outside."""
    page = b'<img src="http://cdn.example/i"><img src="http://cdn.example/j.png"><a href="http://cdn.example/">'
    files, _ = exported(recovered(tmp_path / "r", [Copy(ROOT, page), Copy("http://cdn.example/i", PNG, "image/png")]))
    assert files["index.html"] == (
        b'<img src="cdn.example/i.png"><img src="cdn.example/j.png"><a href="http://cdn.example/">'
    )
    assert files["cdn.example/i.png"] == PNG


def test_without_rewriting_all_bytes_are_as_they_were(tmp_path: Path) -> None:
    """Files are called what the addresses are, and hold what was kept."""
    copies = [
        Copy(ROOT, OUTSIDE),
        Copy(f"{ROOT}a.php?x=1", b'<a href="/">\xe4', header="text/html; charset=koi8-r"),
        Copy(f"{ROOT}z.html", gzip.compress(b'<a href="/">', mtime=0)),
        Copy(f"{ROOT}m.html", BANNER, migrated=True),
    ]
    files, done = exported(recovered(tmp_path / "r", copies), ExportOptions(rewrite=False))
    names = ("index.html", "a.php?x=1", "z.html", "m.html")
    assert files == {f"lost.example/{name}": copy.body for name, copy in zip(names, copies, strict=True)}
    assert done.bytes == sum(len(copy.body) for copy in copies)


def test_types_that_lie(tmp_path: Path) -> None:
    """An image that was sent as a page is none, a page that was sent as a PDF or an image is one."""
    copies = [
        Copy(f"{ROOT}i.php", PNG + b'<a href="/">'),
        Copy(f"{ROOT}report.pdf", b'<html><a href="/i.php">', "application/pdf"),
        Copy(f"{ROOT}notes.txt", b'<html><a href="/i.php">', "text/plain"),
    ]
    files, _ = exported(recovered(tmp_path / "r", copies))
    assert files == {
        "i.php.png": copies[0].body,
        "report.pdf.html": b'<html><a href="i.php.png">',
        "notes.txt": copies[2].body,
    }


def test_gzip_inside(tmp_path: Path) -> None:
    """Pages that are gzipped inside come out unpacked, also without links; damaged ones stay as they are."""
    packed = gzip.compress(b"<html>no links")
    copies = [
        Copy(f"{ROOT}a.html", packed),
        Copy(f"{ROOT}b.html", packed[:-12]),
        Copy(f"{ROOT}c.gz", packed, "application/gzip"),
        Copy(f"{ROOT}d.html", packed + gzip.compress(b", two parts")),
        Copy(f"{ROOT}e.html", packed + b"something else"),
    ]
    files, done = exported(recovered(tmp_path / "r", copies))
    assert files == {
        "a.html": b"<html>no links",
        "b.html": packed[:-12],
        "c.gz": packed,
        "d.html": b"<html>no links, two parts",
        "e.html": packed + b"something else",
    }
    assert done.changed["unpacked"] == 2


def test_what_an_archive_added_is_taken_out(tmp_path: Path) -> None:
    """Of copies that could not be had raw, banners go and links lead to files."""
    urim = f"http://arc.example/web/{DATE}/{ROOT}"
    body = b"<head>" + BANNER + b'<a href="/web/20140210000001/http://lost.example/a.html">'
    files, _ = exported(recovered(tmp_path / "r", [Copy(ROOT, body, migrated=True, urim=urim), Copy(f"{ROOT}a.html")]))
    assert files["index.html"] == b'<head><a href="a.html">'


def test_rejected_copies_are_not_exported(tmp_path: Path) -> None:
    """What came and was no good has no file, and links to it lead to where one would be."""
    folder = recovered(
        tmp_path / "r", [Copy(ROOT, b'<a href="/a.html">'), Copy(f"{ROOT}a.html", b"gone", rejected=True)]
    )
    files, done = exported(folder)
    assert list(files) == ["index.html"]
    assert done.links["missing"] == 1


def test_copies_with_the_same_body(tmp_path: Path) -> None:
    """What was stored once is written for each address, with its own links."""
    copies = [Copy(f"{ROOT}d/a.html", b'<a href="a.html">'), Copy(f"{ROOT}b.html", same_as=f"{ROOT}d/a.html")]
    files, _ = exported(recovered(tmp_path / "r", copies))
    assert files == {"d/a.html": b'<a href="a.html">', "b.html": b'<a href="a.html">'}


def test_a_damaged_copy_costs_itself(tmp_path: Path) -> None:
    """The others are exported, and what could not be read is told."""
    folder = recovered(tmp_path / "r", [Copy(f"{ROOT}{number}.html", b"page %d " % number * 99) for number in range(3)])
    (warc,) = (folder / "warc").iterdir()
    warc.write_bytes(warc.read_bytes()[: warc.stat().st_size // 2])
    files, done = exported(folder)
    assert 0 < len(files) < 3
    assert done.problems.counts == {"unreadable": 3 - len(files)}


@pytest.mark.parametrize("hosting", [False, True])
def test_where_nothing_can_be_read(tmp_path: Path, *, hosting: bool) -> None:
    """No site of no files comes to be; and nobody is told to begin with a page that could not be read."""
    copies = [Copy(ROOT, b"front " * 99), Copy(f"{ROOT}a.html", b"page a " * 99)]
    folder = recovered(tmp_path / "r", copies)
    (warc,) = (folder / "warc").iterdir()
    whole = warc.read_bytes()
    warc.write_bytes(b"")
    with pytest.raises(InputError, match="nothing can be exported, first: unlost-00001"):
        exported(folder, ExportOptions(hosting=hosting))
    with StateReader(folder) as state:
        places = {record.capture.uri: record.offset for _, record in state.records()}
    damaged = bytearray(whole)
    damaged[places[ROOT] : places[ROOT] + 20] = bytes(20)
    warc.write_bytes(damaged)
    files, done = exported(folder, ExportOptions(hosting=hosting))
    assert "a.html" in files
    assert (done.files, done.start, done.problems.total) == (1, None, 1)


def test_dates_of_files(tmp_path: Path) -> None:
    """Files have the date of their copy; a date that is none costs nothing but itself."""
    folder = recovered(
        tmp_path / "r", [Copy(ROOT, b"x", date="20030405060708"), Copy(f"{ROOT}old", b"x", date="19700101000000")]
    )
    target = MemoryTarget()
    export_site(folder, target, ExportOptions())
    assert target.dates.pop(MANIFEST_NAME) == "19960101000000"
    assert target.dates == {"index.html": "20030405060708", "old.html": "19960101000000"}


def test_nothing_to_export(tmp_path: Path) -> None:
    """A folder that is none of a recovery, and a recovery that has nothing yet, say so."""
    tmp_path.joinpath("empty").mkdir()
    with pytest.raises(InputError, match="not the folder of a recovery"):
        exported(tmp_path / "empty")
    with pytest.raises(InputError, match="nothing was recovered so far"):
        exported(recovered(tmp_path / "r", []))


def test_the_same_recovery_makes_the_same_files(tmp_path: Path) -> None:
    """Whatever the order in which copies came."""
    copies = [
        Copy(f"{ROOT}{tail}", b'<a href="/A.html"><a href="/a">') for tail in ("a.html", "A.html", "a", "a/b", "a?b")
    ]
    first, _ = exported(recovered(tmp_path / "1", copies))
    second, _ = exported(recovered(tmp_path / "2", copies[::-1]))
    assert first == second


def test_comments_without_end(tmp_path: Path) -> None:
    """However many comments stand before a page, a feed or anything else, its type is soon told."""
    many = b"<!-- x -->\n" * 300
    copies = [
        Copy(f"{ROOT}a", many, "text/html"),
        Copy(f"{ROOT}b", many + b"<html><p>b", None),
        Copy(f"{ROOT}c", many + b"<rss>", "text/html"),
        Copy(f"{ROOT}d", many + b"<svg/>", "text/xml"),
        Copy(f"{ROOT}e", b"<!--" * 900, None),
    ]
    files, _ = exported(recovered(tmp_path / "r", copies))
    assert set(files) == {"a.html", "b.html", "c.xml", "d.svg", "e"}


def test_the_manifest_names_the_source_of_each_file_and_marks_doubtful_ones(tmp_path: Path) -> None:
    """A page that was kept although the verdict speaks against it says so; a substitution is named."""
    home = b"<title>home</title><link rel=stylesheet href='x.css?v=2'><a href=gone>gone</a>"
    gone = b"<title>Page not found</title><h1>Page not found</h1><p>Sorry, the page does not exist.</p>"
    held = [Held(ROOT, DATE, home), Held(f"{ROOT}gone", DATE, gone), Held(f"{ROOT}x.css", DATE, b"p {}", "text/css")]
    Run(tmp_path, Stub("a", held)).with_defaults()()
    target = MemoryTarget()
    export_site(tmp_path, target, ExportOptions())
    header, entries = read_manifest(MANIFEST_NAME, target.files[MANIFEST_NAME].splitlines())
    found = {each.url: each for each in entries}
    assert (found[f"{ROOT}gone"].path, found[f"{ROOT}gone"].doubtful) == ("gone.html", "soft-404")
    assert (found[ROOT].archive, found[ROOT].datetime, found[ROOT].doubtful) == ("a", DATE, None)
    assert header.substitutes == {f"{ROOT}x.css?v=2": f"{ROOT}x.css"}
    assert b"href='x.css'" in target.files["index.html"]
