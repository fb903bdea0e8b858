"""A small digital library with SQLite: the dynamic site that the experiment loses and recovers."""

import random
import sqlite3
from pathlib import Path

SCRIPT = '''
"""A digital library: records in SQLite, documents beside it."""
import html
import sqlite3
from pathlib import Path

ROOT = Path(__file__).parent


def page(title, body):
    head = f"<!DOCTYPE html><html><head><title>{title}</title></head>"
    return f"{head}<body>\\\\n<h1>{title}</h1>\\\\n{body}\\\\n</body></html>\\\\n"


def application(environ, start_response):
    path = environ["PATH_INFO"]
    database = sqlite3.connect(ROOT / "data" / "library.db")
    try:
        status, kind, body = answer(path, database)
    finally:
        database.close()
    start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


def answer(path, database):
    style = (ROOT / "templates" / "intro.txt").read_text()
    if path == "/":
        rows = database.execute("SELECT id, title FROM items WHERE listed ORDER BY id").fetchall()
        links = "".join(f'<li><a href="/item/{n}">{html.escape(t)}</a></li>' for n, t in rows)
        return "200 OK", "text/html; charset=utf-8", page("Library", f"<p>{style}</p><ul>{links}</ul>").encode()
    if path.startswith("/item/") and path[6:].isdigit():
        row = database.execute("SELECT title, words FROM items WHERE id = ?", (int(path[6:]),)).fetchone()
        if row:
            body = f"<p>{html.escape(row[1])}</p><a href='/pdf/{path[6:]}.pdf'>PDF</a> <a href='/'>all</a>"
            return "200 OK", "text/html; charset=utf-8", page(html.escape(row[0]), body).encode()
    if path.startswith("/pdf/") and path[5:-4].isdigit() and (ROOT / "documents" / path[5:]).is_file():
        return "200 OK", "application/pdf", (ROOT / "documents" / path[5:]).read_bytes()
    return "404 Not Found", "text/html", page("Not found", "").encode()
'''


def make_library(folder: Path, items: int = 125) -> Path:
    """Create the server's files (script, template, settings, database, documents) and return their folder."""
    rng = random.Random(7)  # noqa: S311  not for secrets
    root = folder / "library"
    for name in ("data", "documents", "templates", "settings", "tools"):
        (root / name).mkdir(parents=True)
    (root / "app.py").write_text(SCRIPT.replace("\\\\n", "\\n"))
    (root / "templates" / "intro.txt").write_text("Papers about <b>losing</b> websites.")
    (root / "settings" / "site.ini").write_text("[library]\nname = Monarch\n")
    (root / "tools" / "backup.sh").write_text("#!/bin/sh\nexec sqlite3 data/library.db .dump\n")
    (root / "tools" / "backup.sh").chmod(0o755)
    database = sqlite3.connect(root / "data" / "library.db")
    with database:
        database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, title TEXT, words TEXT, listed INTEGER)")
        for number in range(items):
            words = " ".join(f"{rng.getrandbits(40):x}" for _ in range(60))
            # One record is linked by nothing at first, as in the dissertation.
            database.execute("INSERT INTO items VALUES (?, ?, ?, ?)", (number, f"Item {number}", words, number != 77))
    database.close()
    for number in range(40):
        (root / "documents" / f"{number}.pdf").write_bytes(b"%PDF-1.4\n" + rng.randbytes(3000) + b"\n%%EOF\n")
    return root


def change(root: Path, statement: str) -> None:
    """Execute a statement on the database."""
    database = sqlite3.connect(root / "data" / "library.db")
    with database:
        database.execute(statement)
    database.close()
