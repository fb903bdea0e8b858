"""Draw the diagrams of the documentation into a folder. Run by `make docs`."""

import sys
from collections.abc import Callable
from pathlib import Path

from scripts.svg_drawing import Drawing


def overview() -> Drawing:
    """Draw the packages and the data that they exchange."""
    drawing = Drawing(760, 330, "The packages of unlost and the data that they exchange")
    drawing.box(20, 20, 200, 54, "index files, WARCs, logs", "of an archive")
    drawing.box(280, 20, 200, 54, "maps and filters", "what an archive may hold", kind="ask")
    drawing.box(540, 20, 200, 54, "aggregator", "queries likely archives", kind="ask")
    drawing.box(540, 130, 200, 54, "the world's web archives", "within rate limits")
    drawing.box(280, 130, 200, 54, "recovery", "best capture of each page", kind="yes")
    drawing.box(20, 130, 200, 54, "your lost site", "pages, links, images", kind="no")
    drawing.box(20, 240, 200, 70, "a working site", "files, hosting, WACZ,", "and a report", kind="yes")
    drawing.box(280, 240, 200, 70, "check, watch, vault", "protect a site before", "it is lost")
    drawing.box(540, 240, 200, 70, "refresh", "re-crawl only", "what changed")
    drawing.arrow((220, 47), (276, 47))
    drawing.arrow((480, 47), (536, 47))
    drawing.arrow((640, 74), (640, 126))
    drawing.arrow((540, 157), (484, 157))
    drawing.arrow((220, 157), (276, 157))
    drawing.arrow((330, 184), (330, 212), (120, 212), (120, 236))
    drawing.arrow((220, 275), (276, 275))
    drawing.arrow((640, 240), (640, 188))
    return drawing


def how_a_map_answers() -> Drawing:
    """Draw a URL that becomes a key, and the keys that are looked up."""
    drawing = Drawing(
        760, 330, "How a map answers: from the page to ever wider wildcards, the first line that is there"
    )
    drawing.text(20, 34, "http://www.bbc.co.uk/images/logo.png", "code")
    drawing.text(20, 60, "is asked for", "soft")
    drawing.arrow((290, 30), (330, 30))
    drawing.text(340, 34, "uk,co,bbc)/images/logo.png", "code bold")
    drawing.text(340, 60, "the key: the host turned round, www and the query dropped", "soft")
    drawing.text(20, 104, "looked for, one after the other", "bold")
    drawing.text(500, 104, "the map", "bold")
    looked = [
        ("uk,co,bbc)/images/logo.png", "the page"),
        ("uk,co,bbc)/images/logo.png/*", "what is below it"),
        ("uk,co,bbc)/images/*", "its folder"),
        ("uk,co,bbc)/*", "its host"),
        ("uk,co,bbc,*", "its domain"),
        ("uk,co,*   uk,*", "and so on"),
    ]
    for number, (key, what) in enumerate(looked):
        y = 118 + 34 * number
        drawing.box(20, y, 400, 28, kind="yes" if number == 2 else "plain")
        drawing.text(32, y + 19, key, "code" if number <= 2 else "code soft")
        drawing.text(408, y + 19, what, "soft", "end")
    lines = [
        "com,*                10000+",
        "org,arxiv)/          100",
        "org,arxiv)/*         2500~",
        "org,arxiv)/pdf/*     0",
    ]
    drawing.box(500, 118, 240, 200)
    for number, line in enumerate(lines):
        drawing.text(512, 142 + 26 * number, line, "code")
    drawing.box(506, 226, 228, 28, kind="yes")
    drawing.text(512, 245, "uk,co,bbc)/images/*  300+", "code")
    drawing.text(512, 284, "yes: it may be there", "bold")
    drawing.text(512, 304, "300 copies or more below it", "soft")
    drawing.arrow((420, 200), (460, 200), (460, 240), (502, 240))
    return drawing


def how_the_aggregator_routes() -> Drawing:
    """Draw a request, four archives, and which of them are queried."""
    drawing = Drawing(760, 300, "How the aggregator routes: maps say who is asked")
    drawing.box(20, 115, 130, 54, "who has", "this page?")
    drawing.arrow((150, 142), (186, 142))
    drawing.box(190, 92, 130, 100, "router", "looks into maps", "and filters", kind="ask")
    rows = [
        ("its map says: may be there", "asked", "yes", ""),
        ("its map says: not there", "passed over", "no", "dashed"),
        ("its filter says: not there", "passed over", "no", "dashed"),
        ("has no map", "asked, its hit rate is learnt", "yes", ""),
    ]
    for number, (why, what, kind, line) in enumerate(rows):
        y = 20 + 66 * number
        drawing.box(384, y, 200, 46, f"archive {'ABCD'[number]}", why, kind=kind)
        drawing.text(596, y + 20, what.partition(", ")[0], "bold")
        drawing.text(596, y + 38, what.partition(", ")[2] or ("but for 2 in 100" if line else ""), "soft")
        drawing.arrow((320, 142), (350, 142), (350, y + 23), (380, y + 23), kind=line)
    drawing.text(20, 250, "One list of what A and D say, by date.", "soft")
    drawing.text(20, 270, "Who fails or is late is named in it.", "soft")
    return drawing


def how_copies_are_chosen() -> Drawing:
    """Draw the captures of a page on a time line, and which is selected."""
    drawing = Drawing(
        760, 260, "How captures are chosen: the latest good one; later errors and parked pages are rejected"
    )
    drawing.text(20, 34, "captures of one page, of all archives", "bold")
    drawing.arrow((20, 150), (740, 150))
    captures = [
        (40, "2009", ("status 200", "the page"), "plain", "good, older"),
        (180, "2014", ("status 200", "the page"), "yes", "chosen"),
        (320, "2016", ("status 301", "off-site"), "no", "bad status"),
        (460, "2019", ("status 200", '"domain for sale"'), "no", "bad content"),
        (600, "2021", ("status 404", '"not found"'), "no", "bad status"),
    ]
    for x, year, lines, kind, why in captures:
        drawing.box(x, 64, 120, 54, *lines, kind=kind)
        drawing.text(x + 60, 172, year, "code", "middle")
        drawing.text(x + 60, 196, why, "bold" if kind == "yes" else "soft", "middle")
    drawing.arrow((520, 216), (520, 228), (240, 228), (240, 206), kind="dashed")
    drawing.text(380, 246, "fetched, classified, rejected: the next one is fetched", "soft", "middle")
    return drawing


def how_a_site_is_rewritten() -> Drawing:
    """Draw a page before and after, with the directory between."""
    drawing = Drawing(760, 270, "How a site is rewritten: URLs become files, all other bytes stay the same")
    drawing.text(20, 30, "archived", "bold")
    drawing.box(20, 44, 270, 100)
    before = [
        '<a href="/roses.html">',
        '<img src="http://cdn.example/i.png">',
        '<a href="page.php?id=1">',
        '<a href="http://else.example/">',
    ]
    after = [
        '<a href="roses.html">',
        '<img src="cdn.example/i.png">',
        '<a href="page.php-id=1.html">',
        '<a href="http://else.example/">',
    ]
    for number, old in enumerate(before):
        drawing.text(30, 66 + 22 * number, old, "code")
    drawing.text(480, 30, "exported", "bold")
    drawing.box(480, 44, 260, 100)
    for number, new in enumerate(after):
        drawing.text(490, 66 + 22 * number, new, "code" if number < 3 else "code soft")
    drawing.box(310, 60, 150, 68, "each URL", "has one", "file path", kind="ask")
    drawing.arrow((290, 94), (306, 94))
    drawing.arrow((460, 94), (476, 94))
    rows = [
        ("recovered", "relative path of its file", "yes"),
        ("not recovered", "relative path that its file would have: no other server is contacted", "no"),
        ("another site", "unchanged, to an archive, or not loaded: --external", "plain"),
    ]
    for number, (what, done, kind) in enumerate(rows):
        y = 162 + 34 * number
        drawing.box(20, y, 130, 26, what, kind=kind)
        drawing.text(164, y + 18, done)
    return drawing


def how_refresh_decides() -> Drawing:
    """Draw the nine cells, with what a learned scheme does in each."""
    drawing = Drawing(760, 330, "How refresh decides: nine cells by Last-Modified and ETag; a scheme downloads in some")
    drawing.text(20, 30, "since the last visit", "bold")
    for number, tag in enumerate(("ETag changed", "ETag same", "no ETag")):
        drawing.text(220 + 130 * number, 60, tag, "soft", "middle")
    does = (("yes", "yes", "yes"), ("yes", "plain", "plain"), ("yes", "plain", "yes"))
    for row, date in enumerate(("date changed", "date same", "no date")):
        drawing.text(140, 106 + 66 * row, date, "soft", "end")
        for column, kind in enumerate(does[row]):
            name = "csm"[row] + "csm"[column]
            what = "download" if kind == "yes" else "skip"
            drawing.box(160 + 130 * column, 74 + 66 * row, 120, 56, name, what, kind=kind)
    drawing.box(560, 74, 180, 56, "your log of visits", "what each cell did before")
    drawing.arrow((650, 130), (650, 152))
    drawing.box(560, 156, 180, 56, "a scheme", "as reliable as you ask for", kind="ask")
    drawing.arrow((560, 184), (546, 184))
    drawing.box(560, 238, 180, 44, "audits: some skips", "are checked", kind="no")
    drawing.arrow((650, 238), (650, 216))
    drawing.text(20, 312, "This is Scheme 4: download if either has changed, or if there is neither.", "soft")
    return drawing


def how_the_vault_hides_files() -> Drawing:
    """Draw files that become blocks in pages, and come back from some of them."""
    drawing = Drawing(760, 300, "How the vault hides files: any 4 of 9 pages bring them back")
    drawing.box(20, 40, 120, 60, "app/", "scripts, settings,", "a dump")
    drawing.arrow((140, 70), (166, 70))
    drawing.box(170, 40, 120, 60, "packed,", "and sealed", "if you like", kind="ask")
    drawing.arrow((290, 70), (316, 70))
    drawing.box(320, 40, 130, 60, "coded: 9 blocks,", "of which any", "4 suffice", kind="ask")
    drawing.arrow((450, 70), (476, 70))
    drawing.text(490, 30, "a block in each page, as a comment", "bold")
    lost = {1, 3, 4, 6, 8}
    for number in range(9):
        x, y = 490 + 84 * (number % 3), 40 + 44 * (number // 3)
        drawing.box(x, y, 74, 34, f"page {number + 1}", kind="no" if number in lost else "yes")
    drawing.text(490, 190, "archives keep some, and lose others", "soft")
    drawing.arrow((610, 200), (610, 236), (456, 236))
    drawing.box(322, 210, 130, 52, "4 blocks of", "one version", kind="yes")
    drawing.arrow((322, 236), (296, 236))
    drawing.box(172, 210, 120, 52, "every hash", "checked", kind="ask")
    drawing.arrow((172, 236), (146, 236))
    drawing.box(20, 210, 122, 52, "app/", "byte for byte", kind="yes")
    return drawing


DIAGRAMS: dict[str, Callable[[], Drawing]] = {
    "whole": overview,
    "map": how_a_map_answers,
    "routing": how_the_aggregator_routes,
    "choice": how_copies_are_chosen,
    "rewriting": how_a_site_is_rewritten,
    "refresh": how_refresh_decides,
    "vault": how_the_vault_hides_files,
}
"""Diagrams by file name."""


if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (Path(sys.argv[1]) / f"{name}.svg").write_text(draw().svg())
