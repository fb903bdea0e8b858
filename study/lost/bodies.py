"""The bytes of files: texts of made-up words, documents that say something, pictures that nobody looks at."""

from functools import lru_cache
from html import escape

from study.lost.chance import dice

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
_VOCABULARY = 400  # words of a site
_PARAGRAPHS = 6
_WORDS = 25  # of a paragraph
_NEWS = 8  # words of the line that restless pages have: with ten of 150 changed, a text is still almost identical


@lru_cache(8)
def vocabulary(site: str) -> tuple[str, ...]:
    """Return the words that a site is written in."""
    rng = dice("words", site)
    return tuple("".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4))) for _ in range(_VOCABULARY))


@lru_cache(1 << 16)
def words(site: str, count: int, *names: object) -> str:
    """Return so many words, which depend on the names."""
    return " ".join(dice("text", site, *names).choices(vocabulary(site), k=count))


def paragraphs(site: str, number: int, version: int, *, restless: bool) -> list[str]:
    """Return the text of a file after so many changes.

    Of a restless page a line changes each time; of others a paragraph, and every fifth time all of them.
    """
    if restless:
        return [words(site, _NEWS, number, "news", version), *_last(site, number, [0] * _PARAGRAPHS)]
    touched = [0] * _PARAGRAPHS
    for change in range(1, version + 1):
        if change % 5 == 0:
            touched = [change] * _PARAGRAPHS
        else:
            touched[dice("touched", site, number, change).randrange(_PARAGRAPHS)] = change
    return _last(site, number, touched)


def _last(site: str, number: int, touched: list[int]) -> list[str]:
    return [words(site, _WORDS, number, place, change) for place, change in enumerate(touched)]


def page(title: str, texts: list[str], *, links: list[str], images: list[str], styles: list[str]) -> bytes:
    """Return a page that says something, leads on, and shows pictures."""
    head = [f'<link rel="stylesheet" href="{escape(each)}">' for each in styles if each.endswith(".css")]
    head += [f'<script src="{escape(each)}"></script>' for each in styles if each.endswith(".js")]
    body = [f"<p>{text}</p>" for text in texts]
    body += [f'<img src="{escape(each)}" alt="">' for each in images]
    body += [f'<a href="{escape(each)}">{_label(each)}</a>' for each in links]
    lines = ["<!doctype html>", '<meta charset="utf-8">', f"<title>{title}</title>", *head, f"<h1>{title}</h1>", *body]
    return "\n".join(lines).encode()


def _label(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0] or "home"


def converted(title: str, texts: list[str]) -> bytes:
    """Return a document as search engines keep it: its words in a page."""
    return page(title, texts, links=[], images=[], styles=[])


def pdf(texts: list[str]) -> bytes:
    """Return a document of one page."""
    shown = " ".join(f"({text}) Tj T*" for text in texts)
    stream = f"BT /F1 8 Tf 12 TL 20 700 Td {shown} ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 2400 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj%bendobj\n" % (number, each)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % size + rows + trailer


def picture(*names: object) -> bytes:
    """Return what begins like a picture."""
    return b"GIF89a" + dice("picture", *names).randbytes(240)


def thumbnail(*names: object) -> bytes:
    """Return the small picture that search engines keep in its place."""
    return b"\xff\xd8\xff\xe0" + dice("thumbnail", *names).randbytes(60)


def packed(*names: object) -> bytes:
    """Return what begins like a packed file."""
    return b"PK\x03\x04" + dice("packed", *names).randbytes(240)


def style(site: str) -> bytes:
    """Return a style sheet that needs nothing else."""
    return f"body {{ margin: 1em; }}\n/* {words(site, 10, 'style')} */\n".encode()


def script(site: str) -> bytes:
    """Return a script that names no address."""
    return f"var shown = 1;\n// {words(site, 10, 'script')}\n".encode()
