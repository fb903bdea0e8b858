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
"""Prefix of a file that determines its layout."""

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
"""Column names of Common Crawl's columnar index, by the names that unlost uses."""

_CDX_COLUMNS = {"key": "N", "date": "b", "url": "a", "mime": "m", "status": "s", "length": "S"}
_CDX_HEADER = b" CDX N b a m s S\n"

LAYOUT_HINT_SCHEME = "dns"

LAYOUT_HINT = b'" 19700101000000 {"url": "dns:unlost", "mime": "text/dns", "status": "-"}\n'
"""Prefix of the splits of a CDXJ file. A split may begin with any line; this row determines the layout of its lines.

It sorts before all keys and is not a web page.
"""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Layout of a file.

    Attributes:
        kind: Kind of its lines.
        header: Prefix of each of its splits.
        size: Size in bytes.
    """

    kind: InputKind
    header: bytes
    size: int = 0


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """Input files.

    Attributes:
        names: Names as Spark reports them, in fixed order; a split's source is an index into it.
        layouts: Layouts by name, of files that are read in several splits.
        kind: Kind of all files, if specified by the user.
        rows: Frame with text, file name and split offset.
        read_settings: Settings that affect the rows, for the digest of checkpoints.
    """

    names: Sequence[str]
    layouts: Mapping[str, FileLayout]
    kind: InputKind | None
    rows: "DataFrame"
    read_settings: str = ""

    def display_name(self, source: int) -> str:
        """Return the name of a file for messages."""
        return display_file_name(self.names[source])


@dataclass(frozen=True, slots=True)
class Split:
    """A split of a file, copied to a local file on the executor.

    Attributes:
        source: Index of the file.
        name: Name of the file for messages.
        start: Offset in bytes.
        kind: Kind of its lines.
        path: Local file with the text after `prefix_bytes` bytes in `prefix_lines` lines, which are not in the split.
        prefix_bytes: Size of the prefix.
        prefix_lines: Lines of the prefix.
        has_hint: Whether the prefix is `LAYOUT_HINT`, which is counted as foreign.
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
    """Return a canonical file name: Spark writes `file:/x` or `file:///x`, and escapes inconsistently."""
    return re.sub(r"^(\w+):/+", r"\1:/", unquote(name))


def display_file_name(name: str) -> str:
    """Return a file name for messages."""
    return re.sub(r"^file:/+", "/", unquote(name))


def escape_glob(path: str) -> str:
    r"""Escape glob characters in a path for Spark.

    >>> print(escape_glob("/data/[old]/a*"))
    /data/\[old\]/a\*
    """
    return re.sub(r"([\\{}\[\]*?^])", r"\\\1", path)


def has_url_scheme(name: str) -> bool:
    """Return whether a name has a URL scheme; other names are local files."""
    return _SCHEME.match(name) is not None


def spark_path(name: str | PathLike[str]) -> str:
    r"""Return the name for Spark: URLs unchanged, local files with scheme and absolute path.

    >>> spark_path("s3a://bucket/cdx-*.gz"), spark_path("/data/*.cdxj")
    ('s3a://bucket/cdx-*.gz', 'file:/data/*.cdxj')
    """
    text = fspath(name)
    if has_url_scheme(text):
        return text
    path = Path(text).absolute()
    absolute = fspath(path)
    if path.exists():
        # An existing file may contain glob characters in its name.
        absolute = escape_glob(absolute)
    return f"file:{absolute}"


def read_files(
    session: "SparkSession",
    names: Sequence[str | PathLike[str]],
    kind: InputKind | None = None,
    *,
    in_order: bool = False,
) -> SparkFiles:
    """Return text files.

    Args:
        session: Spark session.
        names: Files, folders, glob patterns or URLs.
        kind: Kind of all files; None to detect each.
        in_order: Preserve the order of `names`. Files of a folder or pattern are always sorted by name.

    Raises:
        InputError: There is no file, or one of an unsupported kind.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  an extra

    paths = [spark_path(name) for name in names]
    with translate_spark_errors():
        # By default, Spark silently ignores files in subfolders.
        reader = session.read.option("lineSep", "\n").option("recursiveFileLookup", "true")
        frame = reader.text(paths)
        groups = [reader.text([path]).inputFiles() for path in paths] if in_order else [frame.inputFiles()]
        files = list(dict.fromkeys(name for group in groups for name in sorted(group)))
        if not files:
            raise InputError(f"{fspath(names[0])}: no files there")
        is_mixed = kind == "mixed"
        kind = None if is_mixed else kind
        layouts = dict(_detect_layouts(session, files, kind))
        if kind is None and not is_mixed:
            refuse_mixed_kinds({display_file_name(name): layout.kind for name, layout in layouts.items()})
        refuse_truncated_maps(files, layouts)
        rows = frame.select(
            f.col("value").cast("binary").alias("data"),
            f.col("_metadata.file_path").alias("name"),
            f.col("_metadata.file_block_start").alias("start"),
        )
    return SparkFiles(files, layouts, kind, rows)


def read_parquet(
    session: "SparkSession", names: Sequence[str | PathLike[str]], columns: Mapping[str, str] = COMMON_CRAWL_COLUMNS
) -> SparkFiles:
    """Return the rows of Parquet files as lines of a CDX file.

    With `url` only, the table is a URL list. With other columns, rows without a date are invalid, as in a CDX.

    Args:
        session: Spark session.
        names: Files, folders, glob patterns or URLs.
        columns: Column names by `key`, `url`, `date`, `mime`, `status` and `length`. Only `url` is required; the key is
            computed from it by default. Dates are 14 digits or timestamps. The length is that of the record.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  an extra

    is_list = set(columns) == {"url"}
    with translate_spark_errors():
        frame = session.read.option("recursiveFileLookup", "true").parquet(*[spark_path(name) for name in names])
        files = sorted(frame.inputFiles())
        types = dict(frame.dtypes)

        def field(name: str) -> Any:  # noqa: ANN401  a column, of which there are two classes
            if name not in columns:
                return f.lit("-")
            column = f.col(columns[name])
            if types.get(columns[name], "").startswith("timestamp"):
                column = f.date_format(column, "yyyyMMddHHmmss")
            # Whitespace would end a column or a line.
            text = f.regexp_replace(column.cast("string"), r"\s", "%20")
            return f.when(f.length(text) > 0, text).otherwise(f.lit("-"))

        selected = ("url",) if is_list else tuple(_CDX_COLUMNS)
        line = f.concat_ws(" ", *[f.coalesce(field(name), f.lit("-")) for name in selected])
        rows = frame.select(
            line.cast("binary").alias("data"),
            f.col("_metadata.file_path").alias("name"),
            f.col("_metadata.file_block_start").alias("start"),
        )
    layout = FileLayout("urls", b"") if is_list else FileLayout("index", _CDX_HEADER)
    return SparkFiles(
        files, dict.fromkeys(map(_normalize_name, files), layout), layout.kind, rows, str(sorted(columns.items()))
    )


def read_head(session: "SparkSession", name: str, size: int = _HEAD_BYTES) -> bytes:
    """Return the first bytes of a file's text, decompressed, with Spark's file systems.

    Raises:
        InputError: The file cannot be read.
    """
    with translate_spark_errors():
        return _read_head(session, name, size)[0]


def _read_head(session: "SparkSession", name: str, size: int) -> tuple[bytes, int | None]:
    """Return the first bytes of a file's text, and its size if it is splittable (uncompressed)."""
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001  PySpark has no public API for Hadoop file systems
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
    """Yield the layouts of splittable files."""

    def detect(name: str) -> tuple[str, FileLayout] | None:
        head, size = _read_head(session, name, _HEAD_BYTES)
        if size is None or not head:
            return None
        return _normalize_name(name), replace(detect_layout(display_file_name(name), head, kind), size=size)

    with ThreadPoolExecutor(_OPEN_CONCURRENCY) as threads:
        yield from filter(None, threads.map(detect, names))


def refuse_truncated_maps(names: Sequence[str], layouts: Mapping[str, FileLayout]) -> None:
    """Raise InputError for a truncated map.

    Files without a header that follow a map in its folder may be further parts of it. The map is valid either alone or
    together with them.
    """
    maps: list[list[tuple[str, FileLayout]]] = []
    for name in names:
        layout = layouts.get(_normalize_name(name))
        if layout is None or layout.kind != "map":
            continue
        is_part = maps and not layout.header and maps[-1][0][0].rpartition("/")[0] == name.rpartition("/")[0]
        if is_part:
            maps[-1].append((name, layout))
        else:
            maps.append([(name, layout)])
    for (name, first), *parts in maps:
        declared = UkvsReader(BytesIO(first.header), Problems(), name).header.meta.get(ROW_BYTES_FIELD)
        actual = first.size - len(first.header)
        if isinstance(declared, int) and declared not in (actual, actual + sum(part.size for _, part in parts)):
            raise InputError(f"{display_file_name(name)}: {_core.wrong_row_bytes(declared, actual)}")


def detect_layout(name: str, head: bytes, kind: InputKind | None) -> FileLayout:
    """Return the layout of a file that begins with `head`.

    Raises:
        InputError: The file has no lines that can be read on a cluster.
    """
    detected = kind
    if detected is None:
        with task_directory() as folder:
            file = Path(folder, "head")
            # The last line may be incomplete.
            file.write_bytes(head[: head.rfind(b"\n") + 1] or head)
            detected = "zipnum" if name.endswith(".idx") else detect_input_kind(file, name)
    if detected not in _LINE_KINDS:
        raise InputError(
            f"{name}: {detected}: on a cluster only CDX, CDXJ, lists of addresses, maps and Parquet are read: make an "
            "index of it first (`unlost index`), or give the parts of a ZipNum"
        )
    lines = head.splitlines(keepends=True)
    header = []
    for line in lines:
        if not (line[:1] in b"!@" or line[1:4] == b"CDX"):
            break
        header.append(line)
    if detected == "index" and not any(line[1:4] == b"CDX" for line in header):
        rows = [line for line in lines[len(header) :] if line.strip()]
        objects = sum(b" {" in line for line in rows)
        return FileLayout(detected, LAYOUT_HINT if objects and objects * 2 >= len(rows) else b"")
    return FileLayout(detected, b"".join(header) if detected in ("index", "map") else b"")


def read_splits(batches: Iterable[Any], files: SparkFiles, folder: Path) -> Iterator[Split]:
    """Yield the splits in Arrow batches of text, name and start. The file of a split is deleted before the next one."""
    sources = {_normalize_name(name): number for number, name in enumerate(files.names)}
    path = Path(folder, "piece")
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
                layout = files.layouts.get(_normalize_name(key[0]))
                if layout is not None and (key[1] > 0 or layout.header == _CDX_HEADER):
                    file.write(layout.header)
            if file is not None:
                file.write(text)
    yield from finish()


def _make_split(current: tuple[str, int], files: SparkFiles, sources: Mapping[str, int], path: Path) -> Split:
    name, start = current
    layout = files.layouts.get(_normalize_name(name))
    header = b""
    if layout is None:
        with path.open("rb") as file:
            layout = detect_layout(display_file_name(name), file.read(_HEAD_BYTES), files.kind)
    elif start > 0 or layout.header == _CDX_HEADER:
        header = layout.header
    source = sources[_normalize_name(name)]
    return Split(
        source,
        display_file_name(name),
        start,
        layout.kind,
        path,
        len(header),
        header.count(b"\n"),
        header == LAYOUT_HINT,
    )


def _row_runs(batch: Any) -> Iterator[tuple[tuple[str, int], bytes]]:  # noqa: ANN401  pyarrow has no types
    """Yield file name and offset of consecutive rows, with their lines joined."""
    names, starts = batch.column("name"), batch.column("start")
    rows = batch.num_rows
    first = 0
    while first < rows:
        key = (names[first].as_py(), starts[first].as_py())
        end = rows
        if (names[rows - 1].as_py(), starts[rows - 1].as_py()) != key:
            # Splits are longer than batches: find the boundary by bisection.
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
    """Return lines with line ends as one text, without a Python object for each."""
    import pyarrow as pa  # noqa: PLC0415  an extra
    from pyarrow import compute  # noqa: PLC0415

    joined = compute.binary_join_element_wise(
        lines.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()), pa.scalar(b"\n", pa.large_binary())
    )
    return b"".join(joined.to_pylist()) if joined.offset or joined.null_count else bytes(joined.buffers()[2] or b"")
