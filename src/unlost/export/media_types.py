"""Media types sniffed from the first bytes, and the file extensions that tell them."""

import re
import zlib

SNIFFED_BYTES = 4096
"""How many first bytes are looked at."""
HTML, XHTML, SVG, CSS = "text/html", "application/xhtml+xml", "image/svg+xml", "text/css"
REWRITTEN_TYPES = frozenset({HTML, XHTML, SVG, CSS})
"""Types whose links are rewritten."""
GZIP_MAGIC = b"\x1f\x8b"
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}")
_GENERIC_TYPES = frozenset(
    {"application/octet-stream", "binary/octet-stream", "application/force-download", "application/x-unknown",
     "application/unknown", "unknown/unknown", "application/download", "application/x-download"}
)  # fmt: skip
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"%PDF-", "application/pdf"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)
# Whatever was passed over stays so: of many comments, each could else end with any other, in ways without number.
_BEGIN = rb"(?:\xef\xbb\xbf)?(?>\s|<!--.*?-->|<\?xml[^>]*>)*+"
_HTML = re.compile(_BEGIN + rb"<(?:!doctype\s+html|html|head|body|title|frameset)\b", re.IGNORECASE | re.DOTALL)
_SVG = re.compile(_BEGIN + rb"(?:<!doctype\s+svg[^>]*>\s*)?<svg\b", re.IGNORECASE | re.DOTALL)
_FEED = re.compile(_BEGIN + rb"<(?:rss|feed|rdf:RDF|urlset|sitemapindex)\b", re.DOTALL)
_BY_EXTENSION = {"html": HTML, "htm": HTML, "xhtml": XHTML, "css": CSS, "svg": SVG, "js": "text/javascript"}


def declared_type(mime: str | None) -> str | None:
    """Return a type as it was told, without parameters; None if it is none, or says nothing.

    >>> declared_type("Text/HTML; charset=x"), declared_type("application/octet-stream"), declared_type("unk")
    ('text/html', None, None)
    """
    essence = (mime or "").partition(";")[0].strip().lower()
    return essence if _TYPE.fullmatch(essence) and essence not in _GENERIC_TYPES else None


def sniff_type(mime: str | None, head: bytes, extension: str) -> str | None:
    r"""Return the type of a body; None if nothing tells.

    mime: as it was told. head: its first bytes, also gzipped. ending: of the path of its address, without the dot.

    >>> sniff_type("text/html", b"\x89PNG\r\n\x1a\n", "php"), sniff_type("application/pdf", b"<html>", "pdf")
    ('image/png', 'text/html')
    >>> sniff_type(None, b"a {}", "css"), sniff_type("text/plain", b"<html>", "txt")
    ('text/css', 'text/plain')
    """
    told = declared_type(mime)
    if head.startswith(GZIP_MAGIC):
        if told not in REWRITTEN_TYPES:
            return told
        head = _decompress_head(head)
        told = told if head else "application/gzip"
    return (
        _type_by_signature(head) or _text_type(told, head.replace(b"\0", b"")) or _BY_EXTENSION.get(extension.lower())
    )


def _text_type(declared: str | None, head: bytes) -> str | None:
    """Return the type of what may be a text. head: without the zeros of UTF-16."""
    if declared == "text/plain":  # browsers show it as it is
        return declared
    if _FEED.match(head):
        return "application/xml" if declared in (None, HTML) else declared
    if declared not in (HTML, XHTML, SVG) and _HTML.match(head):
        return HTML
    if declared in (None, "text/xml", "application/xml") and _SVG.match(head):
        return SVG
    return declared


def _type_by_signature(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((told for signature, told in _SIGNATURES if head.startswith(signature)), None)


def _decompress_head(head: bytes) -> bytes:
    """Return the beginning of what a gzipped body holds; nothing if it is damaged."""
    try:
        return zlib.decompressobj(31).decompress(head, SNIFFED_BYTES)
    except zlib.error:
        return b""


# The first is what is added; with the others a name is right as it is.
_EXTENSIONS_BY_TYPE = {
    HTML: ("html", "htm"),
    XHTML: ("xhtml", "xht", "html", "htm"),
    "text/css": ("css",),
    "text/javascript": ("js", "mjs"),
    "application/json": ("json", "map", "webmanifest"),
    "image/png": ("png", "apng"),
    "image/jpeg": ("jpg", "jpeg", "jpe", "jfif"),
    "image/gif": ("gif",),
    "image/webp": ("webp",),
    "image/avif": ("avif",),
    "image/svg+xml": ("svg",),
    "image/bmp": ("bmp", "dib"),
    "image/tiff": ("tif", "tiff"),
    "image/x-icon": ("ico", "cur"),
    "font/woff": ("woff",),
    "font/woff2": ("woff2",),
    "font/ttf": ("ttf", "otf"),
    "font/otf": ("otf", "ttf"),
    "application/vnd.ms-fontobject": ("eot",),
    "application/pdf": ("pdf",),
}
_TYPE_ALIASES = {
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
    "text/x-javascript": "text/javascript",
    "application/ecmascript": "text/javascript",
    "text/ecmascript": "text/javascript",
    "text/json": "application/json",
    "application/x-json": "application/json",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/vnd.microsoft.icon": "image/x-icon",
    "image/ico": "image/x-icon",
    "image/x-ms-bmp": "image/bmp",
    "application/font-woff": "font/woff",
    "application/x-font-woff": "font/woff",
    "application/font-woff2": "font/woff2",
    "application/x-font-ttf": "font/ttf",
    "application/x-font-otf": "font/otf",
    "application/x-pdf": "application/pdf",
}
# What is added to a name that tells nothing; any ending that is known will do in its place.
_USUAL_EXTENSIONS = {
    "application/xml": "xml",
    "text/xml": "xml",
    "application/rss+xml": "xml",
    "application/atom+xml": "xml",
    "application/rdf+xml": "rdf",
    "application/zip": "zip",
    "application/gzip": "gz",
    "application/x-gzip": "gz",
    "application/postscript": "ps",
    "application/rtf": "rtf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/x-shockwave-flash": "swf",
    "application/ogg": "ogg",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/x-wav": "wav",
    "audio/wav": "wav",
    "audio/midi": "mid",
    "video/mp4": "mp4",
    "video/mpeg": "mpg",
    "video/ogg": "ogv",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/x-ms-wmv": "wmv",
    "video/x-msvideo": "avi",
    "text/calendar": "ics",
    "text/csv": "csv",
    "text/vtt": "vtt",
}
# Not from a table of this machine, or of this Python: names are the same everywhere.
_KNOWN_EXTENSIONS = frozenset(
    {"3gp", "7z", "aac", "ai", "aif", "aiff", "apk", "asc", "atom", "au", "avi", "bat", "bib", "bin", "bz2", "c",
     "cab", "cc", "class", "cpp", "csv", "cue", "cxx", "dat", "deb", "diff", "djvu", "dmg", "dmp", "doc", "docx",
     "dot", "dtd", "dvi", "dwg", "dxf", "epub", "eps", "exe", "f", "f90", "flac", "flv", "gpx", "gz", "h", "hqx",
     "ics", "img", "inc", "ini", "iso", "jar", "java", "jp2", "kml", "kmz", "latex", "lha", "log", "lzh", "m3u",
     "m4a", "m4v", "md", "mdb", "mid", "midi", "mkv", "mobi", "mov", "mp2", "mp3", "mp4", "mpeg", "mpg", "msi",
     "odp", "ods", "odt", "ogg", "ogv", "opus", "patch", "pcx", "pgm", "pgp", "pls", "pot", "ppm", "pps", "ppt",
     "pptx", "ps", "psd", "py", "qt", "ra", "ram", "rar", "rdf", "rm", "rpm", "rss", "rtf", "sh", "shp", "sig",
     "sit", "sql", "srt", "swf", "tar", "tcl", "tex", "tgz", "tsv", "ttl", "txt", "vcf", "vob", "vrml", "vtt",
     "wav", "wma", "wmv", "wpd", "wps", "wrl", "xbm", "xcf", "xls", "xlsx", "xml", "xpm", "xsd", "xsl", "xslt",
     "xz", "z", "zip"}
)  # fmt: skip
# What servers run in the place of sending it: never the last ending of a file that somebody else wrote.
_EXECUTED_EXTENSIONS = frozenset(
    {"php", "php3", "php4", "php5", "php7", "phtml", "phar", "pht", "phps", "asp", "aspx", "asa", "asax", "ashx",
     "asmx", "cfm", "cfml", "cgi", "fcgi", "do", "jsp", "jspx", "jhtml", "pl", "shtml", "shtm", "stm", "ssi"}
)  # fmt: skip
_TYPED_EXTENSIONS = frozenset(ending for endings in _EXTENSIONS_BY_TYPE.values() for ending in endings)
_MAX_EXTENSION = 16


def extension_of(name: str) -> str:
    """Return the ending of a name in lower case, without its dot; nothing if there is none.

    >>> extension_of("a.tar.GZ"), extension_of("a"), extension_of(".a")
    ('gz', '', '')
    """
    stem, dot, ending = name.rpartition(".")
    return ending.lower() if dot and stem and len(ending) <= _MAX_EXTENSION else ""


def is_known_extension(ending: str) -> bool:
    """Return whether an ending tells of a type, and not of what a server runs."""
    return ending in _KNOWN_EXTENSIONS or ending in _TYPED_EXTENSIONS


def extension_to_add(name: str, mime: str | None, *, before_query: str | None = None) -> str:
    """Return what to add to a name so that it tells its type, with its dot; nothing if it does.

    mime: its true type; None if nobody knows. before_query: the ending that its path had, if there was a query.

    >>> [extension_to_add(name, "text/html") for name in ("a", "a.php", "a.HTM", "report.pdf", "a.png")]
    ['.html', '.html', '', '.html', '.html']
    >>> extension_to_add("a.gif", "image/png"), extension_to_add("a.zip", "application/zip"), extension_to_add("a.php", None)
    ('.png', '', '.bin')
    >>> extension_to_add("a.zip-x=1", None, before_query="zip"), extension_to_add("a", None)
    ('.zip', '')
    """
    ending = extension_of(name)
    right = _EXTENSIONS_BY_TYPE.get(_TYPE_ALIASES.get(mime or "", mime or ""))
    if right is not None:
        return "" if ending in right else f".{right[0]}"
    if ending and is_known_extension(ending):
        return ""
    if before_query and is_known_extension(before_query):
        return f".{before_query}"
    if mime in _USUAL_EXTENSIONS:
        return f".{_USUAL_EXTENSIONS[mime]}"
    if ending in _EXECUTED_EXTENSIONS:
        return ".txt" if mime is not None and mime.startswith("text/") else ".bin"
    return ""
