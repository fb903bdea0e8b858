"""Bodies of generated files: texts of random words, PDF documents, images, archives, styles and scripts."""

from functools import lru_cache
from html import escape

from study.lost.seeded_random import seeded_rng

_SYLLABLES = (
    "ba",
    "da",
    "fel",
    "gor",
    "hin",
    "jal",
    "kem",
    "lo",
    "mir",
    "na",
    "os",
    "pra",
    "rin",
    "sul",
    "tam",
    "ur",
    "vex",
)
_VOCABULARY = 400  # distinct words of a site
_PARAGRAPHS = 6
_WORDS = 25  # of a paragraph
_CHANGING_WORDS = 8  # words of the line that changes weekly: with ten of 150 words changed, a text is almost identical


@lru_cache(8)
def vocabulary(site: str) -> tuple[str, ...]:
    """Return the vocabulary of a site."""
    rng = seeded_rng("words", site)
    return tuple("".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(_VOCABULARY))


@lru_cache(1 << 16)
def words(site: str, count: int, *names: object) -> str:
    """Return `count` words, which depend only on the names."""
    return " ".join(seeded_rng("text", site, *names).choices(vocabulary(site), k=count))


def paragraphs(site: str, number: int, version: int, *, changes_weekly: bool) -> list[str]:
    """Return the paragraphs of a file after `version` changes.

    In a page that changes weekly, one line changes each time. In other files one paragraph changes, and every fifth
    time all of them.
    """
    if changes_weekly:
        return [
            words(site, _CHANGING_WORDS, number, "news", version),
            *_paragraph_versions(site, number, [0] * _PARAGRAPHS),
        ]
    versions = [0] * _PARAGRAPHS
    for change in range(1, version + 1):
        if change % 5 == 0:
            versions = [change] * _PARAGRAPHS
        else:
            versions[seeded_rng("touched", site, number, change).randrange(_PARAGRAPHS)] = change
    return _paragraph_versions(site, number, versions)


def _paragraph_versions(site: str, number: int, versions: list[int]) -> list[str]:
    return [words(site, _WORDS, number, index, change) for index, change in enumerate(versions)]


def html_page(title: str, texts: list[str], *, links: list[str], images: list[str], styles: list[str]) -> bytes:
    """Return an HTML page with paragraphs, links, images and styles."""
    head = [f'<link rel="stylesheet" href="{escape(each)}">' for each in styles if each.endswith(".css")]
    head += [f'<script src="{escape(each)}"></script>' for each in styles if each.endswith(".js")]
    body = [f"<p>{text}</p>" for text in texts]
    body += [f'<img src="{escape(each)}" alt="">' for each in images]
    body += [f'<a href="{escape(each)}">{_link_text(each)}</a>' for each in links]
    lines = ["<!doctype html>", '<meta charset="utf-8">', f"<title>{title}</title>", *head, f"<h1>{title}</h1>", *body]
    return "\n".join(lines).encode()


def _link_text(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0] or "home"


def html_version(title: str, texts: list[str]) -> bytes:
    """Return the HTML version of a document, as cached by search engines."""
    return html_page(title, texts, links=[], images=[], styles=[])


def pdf_document(texts: list[str]) -> bytes:
    """Return a PDF document of one page."""
    shown = " ".join(f"({text}) Tj T*" for text in texts)
    stream = f"BT /F1 8 Tf 12 TL 20 700 Td {shown} ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 2400 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj%bendobj\n" % (number, each)
    rows = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % size + rows + trailer


def gif_image(*names: object) -> bytes:
    """Return bytes with the signature of a GIF image."""
    return b"GIF89a" + seeded_rng("picture", *names).randbytes(240)


def thumbnail(*names: object) -> bytes:
    """Return bytes with the signature of a JPEG thumbnail, as cached by search engines."""
    return b"\xff\xd8\xff\xe0" + seeded_rng("thumbnail", *names).randbytes(60)


def zip_file(*names: object) -> bytes:
    """Return bytes with the signature of a ZIP file."""
    return b"PK\x03\x04" + seeded_rng("packed", *names).randbytes(240)


def style_sheet(site: str) -> bytes:
    """Return a style sheet without references."""
    return f"body {{ margin: 1em; }}\n/* {words(site, 10, 'style')} */\n".encode()


def script(site: str) -> bytes:
    """Return a script without URLs."""
    return f"var shown = 1;\n// {words(site, 10, 'script')}\n".encode()
