"""Tests of scoring recoveries."""

from pathlib import Path

from bench.peers.lost_site import CDN, HOME, make_lost_site
from bench.peers.scoring import LinkCounts, check_links, score_recovery

SITE = make_lost_site(1)
RIGHT = {resource.uri: resource.body for resource in SITE}


def test_complete_recovery_has_full_score() -> None:
    """All bodies are correct."""
    outcome = score_recovery(SITE, RIGHT)
    assert (outcome.right, outcome.wrong, outcome.missing) == (len(RIGHT), {}, 0)
    assert all(right == count for right, count in outcome.kinds.values())


def test_planted_faults_are_counted() -> None:
    """Soft 404s, truncated, gzipped, swapped, unknown and missing bodies are classified."""
    by_kind = {resource.kind: resource for resource in SITE}
    softly, plain = by_kind["a soft 404 since"], by_kind["plain page"]
    query, case, packed = (by_kind[kind] for kind in ("query string", "letter case", "stored gzipped"))
    soft = next(body for body, what in softly.other_bodies.items() if what == "a soft 404")
    gzipped = next(body for body, what in packed.other_bodies.items() if what == "gzipped")
    found = dict(RIGHT)
    found[softly.uri] = soft
    found[plain.uri] = plain.body[: len(plain.body) // 2]
    found[query.uri] = plain.body
    found[case.uri] = b"rubbish"
    found[packed.uri] = gzipped
    del found[by_kind["long name"].uri]
    outcome = score_recovery(SITE, found)
    expected = {"a soft 404": 1, "cut off": 1, "another page": 1, "something else": 1, "gzipped": 1}
    assert (outcome.right, outcome.wrong, outcome.missing) == (len(RIGHT) - 6, expected, 1)
    assert outcome.kinds["plain page"] == (0, 1)
    assert outcome.kinds["picture"] == (2, 2)


def test_links_are_resolved_to_files(tmp_path: Path) -> None:
    """Links to files work; to the root of the disk, the lost host and missing files they are broken."""
    folder = tmp_path / "a site"
    (folder / "sub").mkdir(parents=True)
    (folder / "b%.html").write_text("<!doctype html>")
    page = folder / "sub" / "a.html"
    hrefs = [
        "../b%25.html", "../b%25.html#here", "/b.html", f"{HOME}b.html", f"http://{CDN}/a.css", "view.php?id=1",
        "http://other.example/",
    ]  # fmt: skip
    page.write_text("<!doctype html>" + "".join(f'<a href="{href}">x</a>' for href in hrefs))
    assert check_links(folder, [page]) == LinkCounts(working=1, broken=4)


def test_links_out_of_the_folder_are_broken(tmp_path: Path) -> None:
    """An existing file outside of the folder is not part of the site."""
    folder = tmp_path / "site"
    folder.mkdir()
    (tmp_path / "secret.html").write_text("x")
    page = folder / "a.html"
    page.write_text('<!doctype html><a href="../secret.html">x</a>')
    assert check_links(folder, [page]) == LinkCounts(0, 1)
