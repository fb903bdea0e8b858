"""Lists of addresses: one a line, or a column of a table."""

import re
from collections.abc import Iterator

from unlost.formats.lines import Line
from unlost.formats.problems import Problem, Problems
from unlost.formats.textfile import TextSource, read_source_lines, source_name

URL_LIST_PROBLEM_KINDS = {
    "too-long": "a line longer than unlost.formats.lines.MAX_LINE_BYTES",
    "no-column": "expected more columns, or something in this one",
    "bad-uri": "expected an address, found control characters or a row of an index",
}
"""The kinds of problems, and what each means. All of them lose their line."""

_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def read_urls(
    file: TextSource, problems: Problems, name: str | None = None, *, column: int | None = None
) -> Iterator[Line]:
    r"""Yield the addresses of a list, as they stand, in bytes, each with where its line is.

    Blank lines and those that begin with `#` are passed over, and white space around an address is. column: which one,
    from 1, of columns separated by tabs. That they are good addresses is not promised: `unlost.uri` tells. Lines that
    cannot be read are counted in `problems` under `name`, by the kinds of `KINDS`. file, name and what is raised: as
    `unlost.formats.textfile.lines_of` has them.

    >>> from io import BytesIO
    >>> table = BytesIO(b"# time, place, address\n1356998400\tpics\thttp://a.com/\n")
    >>> list(read_urls(table, Problems(), "links.tsv", column=3))
    [Line(number=2, offset=23, text=b'http://a.com/')]
    """
    called = source_name(file, name)
    for line in read_source_lines(file, problems, name):
        text = line.text.removeprefix(b"\xef\xbb\xbf") if line.number == 1 else line.text
        if not text.strip() or text.startswith(b"#"):
            continue
        kind = None
        if column is not None:
            # Not more pieces than are needed, however many tabs there are.
            columns = text.split(b"\t", column)
            text = columns[column - 1] if column <= len(columns) else b""
            kind = None if text.strip() else "no-column"
        text = text.strip()
        if _CONTROL.search(text) or b' {"' in text:
            kind = "bad-uri"
        if kind:
            problems.add(Problem(kind, called, line.number, line.offset, URL_LIST_PROBLEM_KINDS[kind]))
        else:
            yield Line(line.number, line.offset, text)
