"""Documents with known words, and builders of others."""

import gzip
import io
import os
import struct
import subprocess
import zipfile
from pathlib import Path

from unlost.documents import DocumentKind

FILES = Path(__file__).parent / "files"

TEXT_WORDS = (
    "Bringing a website back The quick brown fox jumps over the lazy dog, and ninety-nine archives keep its picture. "
    "Grüße aus Köln: naïve café, “Привет, мир”, Ελληνικά. Read the linked words here. north south east west "
    "The last paragraph ends here. Counted twice by the librarian. Lost and found gazette"
)
SHEET_WORDS = "Grüße aus Köln Привет, мир archives 24 0.75 the second sheet"
SLIDE_WORDS = (
    "Bringing a website back Grüße aus Köln: naïve café Привет, мир The second slide ends here Said by the speaker only"
)
WORDS = {
    DocumentKind.DOC: TEXT_WORDS,
    DocumentKind.DOCX: TEXT_WORDS,
    DocumentKind.ODT: TEXT_WORDS,
    DocumentKind.RTF: TEXT_WORDS,
    DocumentKind.XLS: SHEET_WORDS,
    DocumentKind.XLSX: SHEET_WORDS,
    DocumentKind.ODS: SHEET_WORDS,
    DocumentKind.PPT: SLIDE_WORDS,
    DocumentKind.PPTX: SLIDE_WORDS,
    DocumentKind.ODP: SLIDE_WORDS,
}

HELLO = rb"{\rtf1 Hello}"


def sample(kind: DocumentKind) -> bytes:
    """Return the document of a kind written by LibreOffice."""
    file = FILES / f"words.{kind}"
    return file.read_bytes() if file.exists() else gzip.decompress(file.with_name(f"{file.name}.gz").read_bytes())


def make_zip(parts: dict[str, bytes], base: bytes | None = None) -> bytes:
    """Return a ZIP file of these parts, plus the other parts of `base`."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        if base is not None:
            with zipfile.ZipFile(io.BytesIO(base)) as source:
                for name in source.namelist():
                    if name not in parts:
                        archive.writestr(name, source.read(name))
        for name, content in parts.items():
            archive.writestr(name, content)
    return output.getvalue()


def make_postscript(*lines: str, then: str = "") -> bytes:
    """Return a one-page PostScript file with these lines in Latin-1, followed by a program."""
    drawing = "\n".join(f"72 {700 - 20 * row} moveto ({line}) show" for row, line in enumerate(lines))
    encoding = (
        "/Times-Roman findfont dup length dict begin {def} forall /Encoding ISOLatin1Encoding def currentdict end "
        "/Latin exch definefont 12 scalefont setfont"
    )
    return f"%!PS-Adobe-3.0\n{encoding}\n{drawing}\n{then}\nshowpage\n".encode("latin-1")


def make_pdf(body: bytes, folder: Path, *options: str) -> bytes:
    """Return a PDF converted from PostScript by Ghostscript."""
    output = folder / "made.pdf"
    command = ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", *options, f"-sOutputFile={output}", "-"]
    subprocess.run(command, input=body, check=True, stdout=subprocess.DEVNULL)
    return output.read_bytes()


def make_ole(streams: dict[str, bytes]) -> bytes:
    """Return an OLE file of these streams, padded so that each has its own sectors."""
    sector = 512
    chains: list[tuple[int, int]] = []
    content = b""
    for stream in streams.values():
        padded = stream.ljust(4096, b"\0")
        padded += b"\0" * (-len(padded) % sector)
        chains.append((len(content) // sector, len(padded)))
        content += padded
    directory_at = len(content) // sector
    directory = _directory_entry("Root Entry", 5, 1, 0xFFFFFFFE, 0)
    for number, (name, (start, length)) in enumerate(zip(streams, chains, strict=True), 1):
        right = number + 1 if number < len(streams) else 0xFFFFFFFF
        directory += _directory_entry(name, 2, 0xFFFFFFFF, start, length, right)
    directory += b"\0" * (-len(directory) % sector)
    table_at = directory_at + len(directory) // sector
    table = [0xFFFFFFFF] * 128
    for start, length in [*chains, (directory_at, len(directory))]:
        last = start + length // sector - 1
        for sector_number in range(start, last):
            table[sector_number] = sector_number + 1
        table[last] = 0xFFFFFFFE
    table[table_at] = 0xFFFFFFFD
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<LLLLLLLLL", 0, 1, directory_at, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header += struct.pack("<L", table_at) + b"\xff" * (108 * 4)
    return header + content + directory + struct.pack("<128L", *table)


def _directory_entry(name: str, kind: int, child: int, start: int, length: int, right: int = 0xFFFFFFFF) -> bytes:
    encoded = name.encode("utf-16-le")
    head = encoded.ljust(64, b"\0") + struct.pack("<HBB", len(encoded) + 2, kind, 1)
    return head + struct.pack("<LLL36xLQ", 0xFFFFFFFF, right, child, start, length)


def child_processes(pid: int) -> set[int]:
    """Return the running child processes of a process."""
    running = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if int(parent) == pid and state != "Z":
                running.add(int(folder.name))
    return running


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
