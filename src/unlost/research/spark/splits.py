"""Input files as Spark reads them: splits, each with its file, offset and layout."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from unlost import _core
from unlost.errors import InputError
from unlost.index.ukvs import ROW_BYTES_FIELD, UkvsReader
from unlost.mementomap.readers import InputKind, detect_input_kind, refuse_mixed_kinds
from unlost.problems import Problems
from unlost.research.spark.rows import task_directory
from unlost.research.spark.session import translate_spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HEAD_BYTES = 1 << 16
"""Bytes of a file that are looked at to tell what it is."""

_OPEN_CONCURRENCY = 16
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_LINE_KINDS: tuple[InputKind, ...] = ("index", "urls", "map")

COMMON_CRAWL_COLUMNS = {
    "key": "url_surtkey",
    "url": "url",
    "date": "fetch_time",
    "mime": "content_mime_type",
    "status": "fetch_status",
    "length": "warc_record_length",
}
"""The columns of Common Crawl's index: a name of ours, and theirs."""

_CDX_COLUMNS = {"key": "N", "date": "b", "url": "a", "mime": "m", "status": "s", "length": "S"}
_CDX_HEADER = b" CDX N b a m s S\n"

LAYOUT_HINT_SCHEME = "dns"

LAYOUT_HINT = b'" 19700101000000 {"url": "dns:unlost", "mime": "text/dns", "status": "-"}\n'
"""Stands before pieces of a CDXJ, whose first line may be anything: it tells the layout, sorts first, is no page."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What a file is, as its first lines tell: its kind, what has to stand before every piece of it, and its bytes."""

    kind: InputKind
    header: bytes
    size: int = 0


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """Files of lines.

    names: of all of them, as Spark has them, in a fixed order; a piece's source is a place in it.
    openings: by name, of those that are read in several pieces.
    kind: what all of them are, if the user said so. rows: the frame: text, name of the file, where the piece begins.
    about: how they are read, where that is not told by what they are.
    """

    names: Sequence[str]
    layouts: Mapping[str, FileLayout]
    kind: InputKind | None
    rows: "DataFrame"
    read_settings: str = ""

    def display_name(self, source: int) -> str:
        """Return the name of a file for people."""
        return display_file_name(self.names[source])


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a file's text, in a file of its own on the machine that works.

    source, start: which file, and where in it, in bytes; 0 is its beginning. kind: what it is.
    path: its text, with `added` bytes in `added_lines` lines before it that are not of this piece.
    has_hint: whether those are `HINT`, which is counted as what is no page.
    """

    source: int
    name: str
    start: int
    kind: InputKind
    path: Path
    prefix_bytes: int
    prefix_lines: int
    has_hint: bool


def _normalize_name(name: str) -> str:
    """Return a name by which a file is known: Spark writes `file:/x` and `file:///x`, and escapes more or less."""
    return re.sub(r"^(\w+):/+", r"\1:/", unquote(name))


def display_file_name(name: str) -> str:
    """Return a file's name for people."""
    return re.sub(r"^file:/+", "/", unquote(name))


def escape_glob(path: str) -> str:
    r"""Return what Spark takes for this very path, whatever it would take its brackets for.

    >>> print(escape_glob("/data/[old]/a*"))
    /data/\[old\]/a\*
    """
    return re.sub(r"([\\{}\[\]*?^])", r"\\\1", path)


def has_url_scheme(name: str) -> bool:
    """Return whether a name says in what file system it is; those that do not are of this machine."""
    return _SCHEME.match(name) is not None


def spark_path(name: str | PathLike[str]) -> str:
    r"""Return what Spark takes for a name: addresses as they are, files of this machine with their whole path.

    >>> spark_path("s3a://bucket/cdx-*.gz"), spark_path("/data/*.cdxj")
    ('s3a://bucket/cdx-*.gz', 'file:/data/*.cdxj')
    """
    text = fspath(name)
    if has_url_scheme(text):
        return text
    path = Path(text).absolute()
    whole = fspath(path)
    if path.exists():
        # It has its name, whatever Spark would take its brackets for.
        whole = escape_glob(whole)
    return f"file:{whole}"


def read_files(
    session: "SparkSession",
    names: Sequence[str | PathLike[str]],
    kind: InputKind | None = None,
    *,
    in_order: bool = False,
) -> SparkFiles:
    """Return files of lines: names may be those of folders, patterns, and whatever Spark has addresses for.

    in_order: keep the order of the names; that of files within a folder or a pattern is by name in any case.
    Raises InputError if there is none, or if one is of a kind that has no lines.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  an extra

    paths = [spark_path(name) for name in names]
    with translate_spark_errors():
        # Without looking into folders of folders Spark would leave out what is there, and say nothing.
        read = session.read.option("lineSep", "\n").option("recursiveFileLookup", "true")
        frame = read.text(paths)
        groups = [read.text([path]).inputFiles() for path in paths] if in_order else [frame.inputFiles()]
        files = list(dict.fromkeys(name for group in groups for name in sorted(group)))
        if not files:
            raise InputError(f"{fspath(names[0])}: no files there")
        is_mixed = kind == "mixed"
        kind = None if is_mixed else kind
        openings = dict(_detect_layouts(session, files, kind))
        if kind is None and not is_mixed:
            refuse_mixed_kinds({display_file_name(name): opening.kind for name, opening in openings.items()})
        refuse_truncated_maps(files, openings)
        rows = frame.select(
            f.col("value").cast("binary").alias("data"),
            f.col("_metadata.file_path").alias("name"),
            f.col("_metadata.file_block_start").alias("start"),
        )
    return SparkFiles(files, openings, kind, rows)


def read_parquet(
    session: "SparkSession", names: Sequence[str | PathLike[str]], columns: Mapping[str, str] = COMMON_CRAWL_COLUMNS
) -> SparkFiles:
    """Return the rows of Parquet files as lines of a CDX.

    columns: for `key`, `url`, `date`, `mime`, `status` and `length` the name of the column; `url` there must be, and
    without a key that is made of it. Dates are 14 digits or timestamps. length: bytes of the record, for statistics.
    With `url` alone the table is a list of addresses; with others, rows without a date are bad ones, as in a CDX.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  an extra

    is_list = set(columns) == {"url"}
    with translate_spark_errors():
        frame = session.read.option("recursiveFileLookup", "true").parquet(*[spark_path(name) for name in names])
        files = sorted(frame.inputFiles())
        types = dict(frame.dtypes)

        def field(ours: str) -> Any:  # noqa: ANN401  a column, of which there are two classes
            if ours not in columns:
                return f.lit("-")
            column = f.col(columns[ours])
            if types.get(columns[ours], "").startswith("timestamp"):
                column = f.date_format(column, "yyyyMMddHHmmss")
            # What would end a column or a line.
            text = f.regexp_replace(column.cast("string"), r"\s", "%20")
            return f.when(f.length(text) > 0, text).otherwise(f.lit("-"))

        wanted = ("url",) if is_list else tuple(_CDX_COLUMNS)
        line = f.concat_ws(" ", *[f.coalesce(field(ours), f.lit("-")) for ours in wanted])
        rows = frame.select(
            line.cast("binary").alias("data"),
            f.col("_metadata.file_path").alias("name"),
            f.col("_metadata.file_block_start").alias("start"),
        )
    opening = FileLayout("urls", b"") if is_list else FileLayout("index", _CDX_HEADER)
    return SparkFiles(
        files, dict.fromkeys(map(_normalize_name, files), opening), opening.kind, rows, str(sorted(columns.items()))
    )


def read_head(session: "SparkSession", name: str, size: int = _HEAD_BYTES) -> bytes:
    """Return the first bytes of a file's text, by Spark's own file systems. Raises InputError if it cannot be read."""
    with translate_spark_errors():
        return _read_head(session, name, size)[0]


def _read_head(session: "SparkSession", name: str, size: int) -> tuple[bytes, int | None]:
    """Return the first bytes of a file's text, and its size if it may be read in several pieces."""
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001  there is no other way to Spark's file systems
    conf = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(name))
    system = path.getFileSystem(conf)
    codec = jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(conf).getCodec(path)
    stream = system.open(path)
    try:
        text = stream if codec is None else codec.createInputStream(stream)
        head = bytes(text.readNBytes(size))
    finally:
        stream.close()
    return head, system.getFileStatus(path).getLen() if codec is None else None


def _detect_layouts(
    session: "SparkSession", names: Sequence[str], kind: InputKind | None
) -> Iterable[tuple[str, FileLayout]]:
    """Return what files are that may be read in several pieces."""

    def opening(name: str) -> tuple[str, FileLayout] | None:
        head, size = _read_head(session, name, _HEAD_BYTES)
        if size is None or not head:
            return None
        return _normalize_name(name), replace(detect_layout(display_file_name(name), head, kind), size=size)

    with ThreadPoolExecutor(_OPEN_CONCURRENCY) as threads:
        yield from filter(None, threads.map(opening, names))


def refuse_truncated_maps(names: Sequence[str], layouts: Mapping[str, FileLayout]) -> None:
    """Raise InputError for a map that is truncated.

    Files without a header that follow a map in its folder may be parts of it: the map is sound by itself or with them.
    """
    maps: list[list[tuple[str, FileLayout]]] = []
    for name in names:
        opening = layouts.get(_normalize_name(name))
        if opening is None or opening.kind != "map":
            continue
        is_part = maps and not opening.header and maps[-1][0][0].rpartition("/")[0] == name.rpartition("/")[0]
        if is_part:
            maps[-1].append((name, opening))
        else:
            maps.append([(name, opening)])
    for (name, first), *parts in maps:
        declared = UkvsReader(BytesIO(first.header), Problems(), name).header.meta.get(ROW_BYTES_FIELD)
        own = first.size - len(first.header)
        if isinstance(declared, int) and declared not in (own, own + sum(part.size for _, part in parts)):
            raise InputError(f"{display_file_name(name)}: {_core.wrong_row_bytes(declared, own)}")


def detect_layout(name: str, head: bytes, kind: InputKind | None) -> FileLayout:
    """Return what a file is whose text begins so. Raises InputError if it is nothing that has lines."""
    found = kind
    if found is None:
        with task_directory() as place:
            text = Path(place, "head")
            # The last line may be cut, and lines are what is looked at.
            text.write_bytes(head[: head.rfind(b"\n") + 1] or head)
            found = "zipnum" if name.endswith(".idx") else detect_input_kind(text, name)
    if found not in _LINE_KINDS:
        raise InputError(
            f"{name}: {found}: on a cluster only CDX, CDXJ, lists of addresses, maps and Parquet are read: make an "
            "index of it first (`unlost index`), or give the parts of a ZipNum"
        )
    lines = head.splitlines(keepends=True)
    header = []
    for line in lines:
        if not (line[:1] in b"!@" or line[1:4] == b"CDX"):
            break
        header.append(line)
    if found == "index" and not any(line[1:4] == b"CDX" for line in header):
        rows = [line for line in lines[len(header) :] if line.strip()]
        objects = sum(b" {" in line for line in rows)
        return FileLayout(found, LAYOUT_HINT if objects and objects * 2 >= len(rows) else b"")
    return FileLayout(found, b"".join(header) if found in ("index", "map") else b"")


def read_splits(batches: Iterable[Any], files: SparkFiles, place: Path) -> Iterator[Split]:
    """Yield the pieces of Arrow batches with text, name and start, each in a file until the next is asked for."""
    sources = {_normalize_name(name): number for number, name in enumerate(files.names)}
    path = Path(place, "piece")
    current: tuple[str, int] | None = None
    file: BinaryIO | None = None

    def finish() -> Iterator[Split]:
        if file is None or current is None:
            return
        file.close()
        yield _make_split(current, files, sources, path)
        path.unlink(missing_ok=True)

    for batch in batches:
        for key, text in _row_runs(batch):
            if key != current:
                yield from finish()
                current, file = key, path.open("wb")
                known = files.layouts.get(_normalize_name(key[0]))
                if known is not None and (key[1] > 0 or known.header == _CDX_HEADER):
                    file.write(known.header)
            if file is not None:
                file.write(text)
    yield from finish()


def _make_split(current: tuple[str, int], files: SparkFiles, sources: Mapping[str, int], path: Path) -> Split:
    name, start = current
    known = files.layouts.get(_normalize_name(name))
    header = b""
    if known is None:
        with path.open("rb") as file:
            known = detect_layout(display_file_name(name), file.read(_HEAD_BYTES), files.kind)
    elif start > 0 or known.header == _CDX_HEADER:
        header = known.header
    number = sources[_normalize_name(name)]
    return Split(
        number,
        display_file_name(name),
        start,
        known.kind,
        path,
        len(header),
        header.count(b"\n"),
        header == LAYOUT_HINT,
    )


def _row_runs(batch: Any) -> Iterator[tuple[tuple[str, int], bytes]]:  # noqa: ANN401  pyarrow has no types
    """Yield the name and start of rows that follow each other, with their lines as one text."""
    names, starts = batch.column("name"), batch.column("start")
    rows = batch.num_rows
    first = 0
    while first < rows:
        key = (names[first].as_py(), starts[first].as_py())
        end = rows
        if (names[rows - 1].as_py(), starts[rows - 1].as_py()) != key:
            # Pieces end seldom: halves find the place.
            low, high = first, rows - 1
            while low + 1 < high:
                middle = (low + high) // 2
                if (names[middle].as_py(), starts[middle].as_py()) == key:
                    low = middle
                else:
                    high = middle
            end = high
        yield key, _join_lines(batch.column("data").slice(first, end - first))
        first = end


def _join_lines(lines: Any) -> bytes:  # noqa: ANN401
    """Return lines with their ends, as one text, without looking at each in Python."""
    import pyarrow as pa  # noqa: PLC0415  an extra
    from pyarrow import compute  # noqa: PLC0415

    ended = compute.binary_join_element_wise(
        lines.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()), pa.scalar(b"\n", pa.large_binary())
    )
    return b"".join(ended.to_pylist()) if ended.offset or ended.null_count else bytes(ended.buffers()[2] or b"")
