"""The bytes of the lost site, made of its files: pages in their frame, pictures of letters, a PDF of lines."""

import struct
import zlib
from importlib.resources import files
from string import Template

_TYPES = {
    "html": "text/html; charset=utf-8",
    "htm": "text/html; charset=utf-8",
    "css": "text/css",
    "svg": "image/svg+xml",
    "pixels": "image/png",
    "lines": "application/pdf",
    "txt": "text/plain; charset=utf-8",
}


def content_type_of(file: str) -> str:
    """Return the Content-Type of what is made of a file.

    >>> type_of("lamp.pixels")
    'image/png'
    """
    return _TYPES[file.rpartition(".")[2]]


def build_body(file: str, path: str, title: str) -> bytes:
    """Return the bytes that are made of a file of the site; the same ones always.

    path: where they are on the site, which links in them go by. title: of a page.
    """
    text = files("unlost.demo").joinpath("site", file).read_text(encoding="utf-8")
    match file.rpartition(".")[2]:
        case "html":
            frame = files("unlost.demo").joinpath("site", "frame.html").read_text(encoding="utf-8")
            return Template(frame).substitute(title=title, body=text.strip(), up="../" * path.count("/")).encode()
        case "pixels":
            return build_png(text)
        case "lines":
            return build_pdf(text.splitlines())
    return text.encode()


def build_png(drawing: str) -> bytes:
    r"""Return a picture as PNG.

    drawing: a line `scale N`, a line for each letter with its colour, an empty line, and a letter for each square.

    >>> png("scale 2\nx #ff0000\n\nx\n")[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    head, _, body = drawing.partition("\n\n")
    first, *colours = head.splitlines()
    scale = int(first.removeprefix("scale "))
    palette = {line[0]: bytes.fromhex(line[3:]) for line in colours}
    letters = list(palette)
    rows = [bytes(letters.index(letter) for letter in row for _ in range(scale)) for row in body.split()]
    lines = b"".join(b"\0" + row for row in rows for _ in range(scale))  # 0: no filter
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows) * scale, 8, 3, 0, 0, 0)  # 3: colours of a palette
    parts = ((b"IHDR", size), (b"PLTE", b"".join(palette.values())), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def build_pdf(lines: list[str]) -> bytes:
    """Return lines of plain letters as a PDF of one page, in a typewriter's face.

    >>> pdf(["a (b)"])[:8]
    b'%PDF-1.4'
    """
    shown = "".join(f"({_escape_pdf(line)}) '\n" for line in lines)
    text = f"BT /F 12 Tf 60 780 Td 16 TL\n{shown}ET".encode("ascii")
    page = b"/Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page %b >>" % page,
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
    ]
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def _escape_pdf(line: str) -> str:
    return "".join(f"\\{letter}" if letter in "()\\" else letter for letter in line)
