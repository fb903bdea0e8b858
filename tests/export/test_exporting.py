"""Tests of exported files: correct paths, rewritten links, and otherwise unchanged bytes."""

import gzip
from pathlib import Path

import pytest

from tests.export.sample_recoveries import DATE, ROOT, MemoryTarget, SampleCapture, export_to_memory, make_recovery
from tests.html.stub_pages import HUGO, JEKYLL, MKDOCS, MOVED, SCRIPTED
from tests.recovery.recovery_runner import RecoveryRunner
from tests.recovery.stub_archive import Held, Stub
from unlost.errors import InputError
from unlost.export import EMPTY_IMAGE_URL, MANIFEST_NAME, ExportOptions, ExternalLinks, export_site, read_manifest
from unlost.recovery import RecoverOptions
from unlost.recovery.state import StateReader

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
BANNER = b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->x<!-- END WAYBACK TOOLBAR INSERT -->"


def exported_home_page(
    folder: Path,
    body: bytes,
    *others: SampleCapture,
    options: ExportOptions | None = None,
    plan: RecoverOptions | None = None,
) -> bytes:
    """Return the home page of a site after its export."""
    files, _ = export_to_memory(make_recovery(folder / "r", [SampleCapture(ROOT, body), *others], plan), options)
    return files["index.html"]


def test_all_kinds_of_links_are_rewritten(tmp_path: Path) -> None:
    """Attributes, srcset, styles, refreshes and imports lead to files; all other bytes are unchanged."""
    page = (
        b'<!DOCTYPE html>\n<HTML><base href="http://lost.example/d/">'
        b"<link rel=stylesheet href='../s.css' integrity=x>\n"
        b'<meta http-equiv=refresh content="5; url=/next"><style>p { background: url("../i.png?a#b") }</style>\n'
        b'<p style="background:url(/i.png?a)"><a  HREF = page.php?id=1&amp;x#top >x</a>'
        b'<img srcset="/i.png?a 1x, /i.png?b 2x"> &amp; <!-- <a href="/next"> -->'
        b'<svg><image xlink:href="/i.png?a"/></svg><a href="mailto:me@lost.example">m</a></HTML>'
    )
    files, done = export_to_memory(
        make_recovery(
            tmp_path / "r",
            [
                SampleCapture(ROOT, page),
                SampleCapture(f"{ROOT}s.css", b'@import "t.css"; p{background:url( i.png?a )}', "text/css"),
                SampleCapture(f"{ROOT}t.css", b"", "text/css"),
                SampleCapture(f"{ROOT}i.png?a", PNG, "image/png"),
                SampleCapture(f"{ROOT}i.png?b", PNG, "image/png"),
                SampleCapture(f"{ROOT}next", b"next"),
                SampleCapture(f"{ROOT}d/page.php?id=1&x", b"<a href='../s.css'>"),
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


def test_lazy_loading_attributes_are_rewritten(tmp_path: Path) -> None:
    """They are rewritten like `src`, `srcset` and `style`, also if the file is missing."""
    page = (
        b"<img data-lazy-src=/i.png?a data-lazy-srcset='/i.png?a 1x, /gone.png 2x'><p data-bg='url(/i.png?a)'>"
        b"<p data-bg=red><p data-background-image='/i.png?a'><img data-original=/i.png?a data-src=/gone.png>"
    )
    other = SampleCapture(f"{ROOT}i.png?a", PNG, "image/png")
    assert exported_home_page(tmp_path, page, other) == (
        b"<img data-lazy-src=i.png-a.png data-lazy-srcset='i.png-a.png 1x, gone.png 2x'><p data-bg='url(i.png-a.png)'>"
        b"<p data-bg=red><p data-background-image='i.png-a.png'><img data-original=i.png-a.png data-src=gone.png>"
    )


def test_script_urls_are_rewritten_if_the_file_exists(tmp_path: Path) -> None:
    """Data attributes, event handlers and navigations get the file's path; other scripts are unchanged."""
    page = (
        b"<body onload=\"load('header', '/g/header.html')\" data-next='http://lost.example/next' data-tab=next>"
        b"<p data-x=/gone.html data-y='g/header.html' onclick=\"location='/next'; open('/gone.html')\">"
        b"<a onclick='location.href=&quot;/next&quot;' data-out=http://out.example/next>"
        b"<script>location.replace(\"/next\"); load('/g/header.html'); page = '/next'; location = '/gone'</script>"
    )
    others = (
        SampleCapture(f"{ROOT}g/header.html", b"<a data-home='/'  data-x='/next' onclick=\"x('header.html')\">"),
        SampleCapture(f"{ROOT}next", b"x"),
    )
    files, done = export_to_memory(make_recovery(tmp_path / "r", [SampleCapture(ROOT, page), *others]))
    assert files["index.html"] == (
        b"<body onload=\"load('header', 'g/header.html')\" data-next='next.html' data-tab=next>"
        b"<p data-x=/gone.html data-y='g/header.html' onclick=\"location='next.html'; open('/gone.html')\">"
        b"<a onclick='location.href=&quot;next.html&quot;' data-out=http://out.example/next>"
        b"<script>location.replace(\"next.html\"); load('/g/header.html'); page = '/next'; location = '/gone'</script>"
    )
    assert files["g/header.html"] == b"<a data-home='/'  data-x='../next.html' onclick=\"x('header.html')\">"
    assert done.links["missing"] == 0


@pytest.mark.parametrize("stub", [JEKYLL, MKDOCS, HUGO, MOVED, SCRIPTED])
def test_redirect_stubs_are_rewritten(tmp_path: Path, stub: str) -> None:
    """Refresh, script and link of a redirect stub lead to the file of its target."""
    captures = [
        SampleCapture(ROOT, b"home"),
        SampleCapture(f"{ROOT}old", stub.format(url="/new/").encode()),
        SampleCapture(f"{ROOT}new/", b"new"),
    ]
    files, _ = export_to_memory(make_recovery(tmp_path / "r", captures))
    expected = stub.format(url="new/index.html")
    if stub is HUGO:
        expected = expected.replace("<title>new/index.html", "<title>/new/")
    assert files["old.html"].decode() == expected


def test_redirect_stubs_become_rules_when_hosted(tmp_path: Path) -> None:
    """A stub with a recovered or external target gets a redirect rule; others are served as files."""
    targets = {"old": "/new", "gone": "/never", "away": "http://else.example/x", "self": "/self", "loop": "/old-loop"}
    stubs = [SampleCapture(ROOT + path, HUGO.format(url=to).encode()) for path, to in targets.items()]
    moved = SampleCapture(f"{ROOT}new", status=301, location="/newest/", mime=None)
    back = SampleCapture(f"{ROOT}old-loop", HUGO.format(url="/loop").encode())
    text = SampleCapture(f"{ROOT}text", JEKYLL.format(url="/newest/").encode(), "text/plain")
    captures = [SampleCapture(ROOT, b"home"), *stubs, moved, back, text, SampleCapture(f"{ROOT}newest/", b"new")]
    files, _ = export_to_memory(make_recovery(tmp_path / "r", captures), ExportOptions(hosting=True))
    rules = [line.split() for line in files["_redirects"].decode().splitlines() if not line.startswith("#")]
    found = {rule[0]: rule[1:] for rule in rules if rule}
    assert {"old.html", "gone.html", "away.html", "self.html", "loop.html", "old-loop.html"} <= files.keys()
    assert found["/old"] == ["/newest/", "301!"]
    assert found["/away"] == ["http://else.example/x", "301!"]
    assert [found[f"/{name}"] for name in ("gone", "self", "loop", "old-loop")] == [
        [f"/{name}.html", "200!"] for name in ("gone", "self", "loop", "old-loop")
    ]
    assert "301!" not in found.get("/text", [])


def test_special_characters_in_names_are_escaped_in_links(tmp_path: Path) -> None:
    """Percent signs, question marks, hashes, spaces and non-ASCII letters are escaped."""
    page = b'<a href="/100%25.html"><a href="/a%3Fb%23c.html"><a href="/caf%C3%A9%20x.html"><a href="/File:y">'
    uris = ("100%25.html", "a%3Fb%23c.html", "caf%C3%A9%20x.html", "File:y")
    files, _ = export_to_memory(
        make_recovery(tmp_path / "r", [SampleCapture(ROOT, page), *(SampleCapture(ROOT + uri, b"x") for uri in uris)])
    )
    assert {"100%.html", "a-b#c.html", "café x.html", "File:y.html"} < set(files)
    assert files["index.html"] == (
        b'<a href="100%25.html"><a href="a-b%23c.html"><a href="caf%C3%A9%20x.html"><a href="File%3Ay.html">'
    )


def test_links_lead_to_final_redirect_target(tmp_path: Path) -> None:
    """A link into a redirect loop leads to where its file would be."""
    page = b'<a href="/old"><a href="/older"><a href="/loop"><a href="/away"><a href="/lost">'
    new = exported_home_page(
        tmp_path,
        page,
        SampleCapture(f"{ROOT}new.html", b"new"),
        SampleCapture(f"{ROOT}old", status=301, location="/new.html"),
        SampleCapture(f"{ROOT}older", status=302, location="old"),
        SampleCapture(f"{ROOT}loop", status=302, location="/loop2"),
        SampleCapture(f"{ROOT}loop2", status=302, location="/loop"),
        SampleCapture(f"{ROOT}away", status=302, location="http://other.example/x"),
        SampleCapture(f"{ROOT}lost", status=302, location="/gone.html"),
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
def test_invalid_redirect_targets_are_not_linked(tmp_path: Path, location: str, expected: bytes) -> None:
    """A link leads to the path of the redirect, or to a valid http URL."""
    for options in (ExportOptions(hosting=True), ExportOptions()):
        folder = tmp_path / str(options.hosting)
        redirect = SampleCapture(f"{ROOT}r", status=302, location=location)
        assert exported_home_page(folder, b'<a href="/r">', redirect, options=options) == b'<a href="%b">' % expected


def test_all_spellings_of_a_url_lead_to_the_page(tmp_path: Path) -> None:
    """Schemes, `www`, default pages, missing slashes, session ids and aliases are equivalent."""
    page = (
        b'<a href="https://www.lost.example/a"><a href="/a/index.html"><a href="//LOST.example:80/a/">'
        b'<a href="/a/?sid=0123456789abcdef0123456789abcdef"><a href="/Other/Name.HTML"><a href="/sub/">'
    )
    folder = make_recovery(
        tmp_path / "r",
        [SampleCapture(ROOT, page), SampleCapture(f"{ROOT}a/", b"a"), SampleCapture(f"{ROOT}sub/default.asp", b"d")],
        aliases=[(f"{ROOT}Other/Name.HTML", f"{ROOT}a/"), (f"{ROOT}sub/", f"{ROOT}sub/default.asp")],
    )
    files, _ = export_to_memory(folder)
    assert files["index.html"] == b'<a href="a/index.html">' * 5 + b'<a href="sub/index.html">'


def test_ignore_case_of_recovery_applies_to_links(tmp_path: Path) -> None:
    """With `--ignore-case` both spellings lead to one file."""
    page = exported_home_page(
        tmp_path,
        b'<a href="/ABOUT.html">',
        SampleCapture(f"{ROOT}about.html"),
        plan=RecoverOptions(ROOT, ignore_case=True),
    )
    assert page == b'<a href="about.html">'


def test_links_to_missing_resources_lead_to_their_path(tmp_path: Path) -> None:
    """No link leaves the machine, and a file that is added later is found."""
    page = b'<a href="/gone"><a href="/gone.pdf"><img src="/gone.gif"><a href="page">'
    files, done = export_to_memory(
        make_recovery(tmp_path / "r", [SampleCapture(ROOT, page), SampleCapture(f"{ROOT}page.html", b"other")])
    )
    assert files["index.html"].startswith(b'<a href="gone.html"><a href="gone.pdf"><img src="gone.gif"><a href="page~')
    assert done.links["missing"] == 4


def test_pages_outside_the_recovered_folder_are_external(tmp_path: Path) -> None:
    """Links to other pages of the host are absolute; requisites of the pages are local."""
    body = b'<a href="/joe/a"><a href="/ann/#x"><img src="/logo.gif">'
    files, done = export_to_memory(
        make_recovery(tmp_path / "r", [SampleCapture(f"{ROOT}joe/", body)], RecoverOptions(f"{ROOT}joe/"))
    )
    assert files["joe/index.html"] == b'<a href="a.html"><a href="http://lost.example/ann/#x"><img src="../logo.gif">'
    assert done.start == "joe/index.html"


@pytest.mark.parametrize("page", ["http://lost.example:80/joe/", "http://WWW.Lost.example/joe/"])
def test_external_links_are_absolute_for_any_host_spelling(tmp_path: Path, page: str) -> None:
    """This also holds if the capture has another spelling of the host."""
    files, _ = export_to_memory(
        make_recovery(tmp_path / "r", [SampleCapture(page, b'<a href="/ann/">')], RecoverOptions(f"{ROOT}joe/"))
    )
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
def test_external_links_follow_the_option(
    tmp_path: Path, external: ExternalLinks, urim: str | None, expected: tuple[bytes, bytes]
) -> None:
    """They are unchanged, or lead to the archive of the page, or load nothing."""
    folder = make_recovery(tmp_path / "r", [SampleCapture(ROOT, OUTSIDE, urim=urim)])
    files, done = export_to_memory(folder, ExportOptions(external=external))
    assert files["index.html"] == b'<a href="%b">b</a><img src="%b"><a href="index.html">' % expected
    assert done.links["outside"] == 2


def test_requisites_of_other_hosts_have_their_own_folder(tmp_path: Path) -> None:
    """Other pages of that host are still external."""
    page = b'<img src="http://cdn.example/i"><img src="http://cdn.example/j.png"><a href="http://cdn.example/">'
    files, _ = export_to_memory(
        make_recovery(
            tmp_path / "r", [SampleCapture(ROOT, page), SampleCapture("http://cdn.example/i", PNG, "image/png")]
        )
    )
    assert files["index.html"] == (
        b'<img src="cdn.example/i.png"><img src="cdn.example/j.png"><a href="http://cdn.example/">'
    )
    assert files["cdn.example/i.png"] == PNG


def test_export_without_rewriting_is_verbatim(tmp_path: Path) -> None:
    """Files have the names of their URLs and the stored bytes."""
    captures = [
        SampleCapture(ROOT, OUTSIDE),
        SampleCapture(f"{ROOT}a.php?x=1", b'<a href="/">\xe4', header="text/html; charset=koi8-r"),
        SampleCapture(f"{ROOT}z.html", gzip.compress(b'<a href="/">', mtime=0)),
        SampleCapture(f"{ROOT}m.html", BANNER, migrated=True),
    ]
    files, done = export_to_memory(make_recovery(tmp_path / "r", captures), ExportOptions(rewrite=False))
    names = ("index.html", "a.php?x=1", "z.html", "m.html")
    assert files == {f"lost.example/{name}": capture.body for name, capture in zip(names, captures, strict=True)}
    assert done.bytes == sum(len(capture.body) for capture in captures)


def test_content_type_is_detected_from_bytes(tmp_path: Path) -> None:
    """Wrong Content-Types of images and pages are corrected."""
    captures = [
        SampleCapture(f"{ROOT}i.php", PNG + b'<a href="/">'),
        SampleCapture(f"{ROOT}report.pdf", b'<html><a href="/i.php">', "application/pdf"),
        SampleCapture(f"{ROOT}notes.txt", b'<html><a href="/i.php">', "text/plain"),
    ]
    files, _ = export_to_memory(make_recovery(tmp_path / "r", captures))
    assert files == {
        "i.php.png": captures[0].body,
        "report.pdf.html": b'<html><a href="i.php.png">',
        "notes.txt": captures[2].body,
    }


def test_gzipped_pages_are_decompressed(tmp_path: Path) -> None:
    """Pages with gzipped bodies are decompressed; damaged ones are unchanged."""
    packed = gzip.compress(b"<html>no links")
    captures = [
        SampleCapture(f"{ROOT}a.html", packed),
        SampleCapture(f"{ROOT}b.html", packed[:-12]),
        SampleCapture(f"{ROOT}c.gz", packed, "application/gzip"),
        SampleCapture(f"{ROOT}d.html", packed + gzip.compress(b", two parts")),
        SampleCapture(f"{ROOT}e.html", packed + b"something else"),
    ]
    files, done = export_to_memory(make_recovery(tmp_path / "r", captures))
    assert files == {
        "a.html": b"<html>no links",
        "b.html": packed[:-12],
        "c.gz": packed,
        "d.html": b"<html>no links, two parts",
        "e.html": packed + b"something else",
    }
    assert done.changed["unpacked"] == 2


def test_archive_banners_are_removed(tmp_path: Path) -> None:
    """Banners of rewritten captures are removed, and their links lead to files."""
    urim = f"http://arc.example/web/{DATE}/{ROOT}"
    body = b"<head>" + BANNER + b'<a href="/web/20140210000001/http://lost.example/a.html">'
    files, _ = export_to_memory(
        make_recovery(
            tmp_path / "r", [SampleCapture(ROOT, body, migrated=True, urim=urim), SampleCapture(f"{ROOT}a.html")]
        )
    )
    assert files["index.html"] == b'<head><a href="a.html">'


def test_rejected_captures_are_not_exported(tmp_path: Path) -> None:
    """Links to a rejected page lead to its path."""
    folder = make_recovery(
        tmp_path / "r",
        [SampleCapture(ROOT, b'<a href="/a.html">'), SampleCapture(f"{ROOT}a.html", b"gone", rejected=True)],
    )
    files, done = export_to_memory(folder)
    assert list(files) == ["index.html"]
    assert done.links["missing"] == 1


def test_revisits_are_exported_for_each_url(tmp_path: Path) -> None:
    """A body that is stored once is written for each URL with its own links."""
    captures = [
        SampleCapture(f"{ROOT}d/a.html", b'<a href="a.html">'),
        SampleCapture(f"{ROOT}b.html", same_as=f"{ROOT}d/a.html"),
    ]
    files, _ = export_to_memory(make_recovery(tmp_path / "r", captures))
    assert files == {"d/a.html": b'<a href="a.html">', "b.html": b'<a href="a.html">'}


def test_damaged_capture_is_reported_and_others_exported(tmp_path: Path) -> None:
    """The number of unreadable captures is reported."""
    folder = make_recovery(
        tmp_path / "r", [SampleCapture(f"{ROOT}{number}.html", b"page %d " % number * 99) for number in range(3)]
    )
    (warc,) = (folder / "warc").iterdir()
    warc.write_bytes(warc.read_bytes()[: warc.stat().st_size // 2])
    files, done = export_to_memory(folder)
    assert 0 < len(files) < 3
    assert done.problems.counts == {"unreadable": 3 - len(files)}


@pytest.mark.parametrize("hosting", [False, True])
def test_unreadable_recovery_is_an_error(tmp_path: Path, *, hosting: bool) -> None:
    """If nothing is readable, no site is written; an unreadable start page is not reported as start."""
    captures = [SampleCapture(ROOT, b"front " * 99), SampleCapture(f"{ROOT}a.html", b"page a " * 99)]
    folder = make_recovery(tmp_path / "r", captures)
    (warc,) = (folder / "warc").iterdir()
    whole = warc.read_bytes()
    warc.write_bytes(b"")
    with pytest.raises(InputError, match="nothing can be exported, first: unlost-00001"):
        export_to_memory(folder, ExportOptions(hosting=hosting))
    with StateReader(folder) as state:
        places = {record.capture.uri: record.offset for _, record in state.records()}
    damaged = bytearray(whole)
    damaged[places[ROOT] : places[ROOT] + 20] = bytes(20)
    warc.write_bytes(damaged)
    files, done = export_to_memory(folder, ExportOptions(hosting=hosting))
    assert "a.html" in files
    assert (done.files, done.start, done.problems.total) == (1, None, 1)


def test_files_have_the_dates_of_their_captures(tmp_path: Path) -> None:
    """An implausible date is replaced."""
    folder = make_recovery(
        tmp_path / "r",
        [SampleCapture(ROOT, b"x", date="20030405060708"), SampleCapture(f"{ROOT}old", b"x", date="19700101000000")],
    )
    target = MemoryTarget()
    export_site(folder, target, ExportOptions())
    assert target.dates.pop(MANIFEST_NAME) == "19960101000000"
    assert target.dates == {"index.html": "20030405060708", "old.html": "19960101000000"}


def test_empty_recovery_is_an_error(tmp_path: Path) -> None:
    """A folder without a recovery, and a recovery without captures, raise errors."""
    tmp_path.joinpath("empty").mkdir()
    with pytest.raises(InputError, match="not the folder of a recovery"):
        export_to_memory(tmp_path / "empty")
    with pytest.raises(InputError, match="nothing was recovered so far"):
        export_to_memory(make_recovery(tmp_path / "r", []))


def test_export_is_independent_of_capture_order(tmp_path: Path) -> None:
    """The same captures in another order yield the same files."""
    captures = [
        SampleCapture(f"{ROOT}{tail}", b'<a href="/A.html"><a href="/a">')
        for tail in ("a.html", "A.html", "a", "a/b", "a?b")
    ]
    first, _ = export_to_memory(make_recovery(tmp_path / "1", captures))
    second, _ = export_to_memory(make_recovery(tmp_path / "2", captures[::-1]))
    assert first == second


def test_type_detection_skips_many_comments(tmp_path: Path) -> None:
    """The type of a file is detected after any number of comments."""
    many = b"<!-- x -->\n" * 300
    captures = [
        SampleCapture(f"{ROOT}a", many, "text/html"),
        SampleCapture(f"{ROOT}b", many + b"<html><p>b", None),
        SampleCapture(f"{ROOT}c", many + b"<rss>", "text/html"),
        SampleCapture(f"{ROOT}d", many + b"<svg/>", "text/xml"),
        SampleCapture(f"{ROOT}e", b"<!--" * 900, None),
    ]
    files, _ = export_to_memory(make_recovery(tmp_path / "r", captures))
    assert set(files) == {"a.html", "b.html", "c.xml", "d.svg", "e"}


def test_manifest_has_sources_doubtful_pages_and_substitutes(tmp_path: Path) -> None:
    """Each entry names archive and date; doubtful pages have their verdict."""
    home = b"<title>home</title><link rel=stylesheet href='x.css?v=2'><a href=gone>gone</a>"
    gone = b"<title>Page not found</title><h1>Page not found</h1><p>Sorry, the page does not exist.</p>"
    held = [Held(ROOT, DATE, home), Held(f"{ROOT}gone", DATE, gone), Held(f"{ROOT}x.css", DATE, b"p {}", "text/css")]
    RecoveryRunner(tmp_path, Stub("a", held)).with_defaults()()
    target = MemoryTarget()
    export_site(tmp_path, target, ExportOptions())
    header, entries = read_manifest(MANIFEST_NAME, target.files[MANIFEST_NAME].splitlines())
    found = {each.url: each for each in entries}
    assert (found[f"{ROOT}gone"].path, found[f"{ROOT}gone"].doubtful) == ("gone.html", "soft-404")
    assert (found[ROOT].archive, found[ROOT].datetime, found[ROOT].doubtful) == ("a", DATE, None)
    assert header.substitutes == {f"{ROOT}x.css?v=2": f"{ROOT}x.css"}
    assert b"href='x.css'" in target.files["index.html"]
