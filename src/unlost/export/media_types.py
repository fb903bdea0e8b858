"""Media types sniffed from the first bytes of a body, and file extensions for them."""

import re
import zlib

SNIFFED_BYTES = 4096
"""Number of bytes of a body that are inspected."""
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
# Possessive quantifiers prevent catastrophic backtracking over many comments.
_BEGIN = rb"(?:\xef\xbb\xbf)?(?>\s|<!--.*?-->|<\?xml[^>]*>)*+"
_HTML = re.compile(_BEGIN + rb"<(?:!doctype\s+html|html|head|body|title|frameset)\b", re.IGNORECASE | re.DOTALL)
_SVG = re.compile(_BEGIN + rb"(?:<!doctype\s+svg[^>]*>\s*)?<svg\b", re.IGNORECASE | re.DOTALL)
_FEED = re.compile(_BEGIN + rb"<(?:rss|feed|rdf:RDF|urlset|sitemapindex)\b", re.DOTALL)
_BY_EXTENSION = {"html": HTML, "htm": HTML, "xhtml": XHTML, "css": CSS, "svg": SVG, "js": "text/javascript"}


def parse_media_type(mime: str | None) -> str | None:
    """Return a declared media type without parameters; None if it is invalid or generic.

    >>> parse_media_type("Text/HTML; charset=x"), parse_media_type("application/octet-stream"), parse_media_type("unk")
    ('text/html', None, None)
    """
    essence = (mime or "").partition(";")[0].strip().lower()
    return essence if _TYPE.fullmatch(essence) and essence not in _GENERIC_TYPES else None


def sniff_type(mime: str | None, head: bytes, extension: str) -> str | None:
    r"""Return the media type of a body, or None if it is unknown.

    Args:
        mime: The declared media type.
        head: The first bytes of the body, which may be gzipped.
        extension: Extension of the URL's path, without the dot.

    >>> sniff_type("text/html", b"\x89PNG\r\n\x1a\n", "php"), sniff_type("application/pdf", b"<html>", "pdf")
    ('image/png', 'text/html')
    >>> sniff_type(None, b"a {}", "css"), sniff_type("text/plain", b"<html>", "txt")
    ('text/css', 'text/plain')
    """
    declared = parse_media_type(mime)
    if head.startswith(GZIP_MAGIC):
        if declared not in REWRITTEN_TYPES:
            return declared
        head = _decompress_head(head)
        declared = declared if head else "application/gzip"
    return (
        _type_by_signature(head)
        or _text_type(declared, head.replace(b"\0", b""))
        or _BY_EXTENSION.get(extension.lower())
    )


def _text_type(declared: str | None, head: bytes) -> str | None:
    """Return the type of a body that may be text.

    Args:
        declared: The declared media type; None if it is invalid or generic.
        head: The first bytes, without the NULs of UTF-16.
    """
    if declared == "text/plain":  # browsers do not sniff it
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
    return next((mime for signature, mime in _SIGNATURES if head.startswith(signature)), None)


def _decompress_head(head: bytes) -> bytes:
    """Return the first bytes of a gzipped body; empty if it is damaged."""
    try:
        return zlib.decompressobj(31).decompress(head, SNIFFED_BYTES)
    except zlib.error:
        return b""


# The first extension is added to names; the others are accepted.
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
# Extensions added to names without a known one; any known extension is accepted.
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
# A list of our own and not the `mimetypes` of the machine, so that names are the same everywhere.
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
# Extensions of scripts that servers execute: an exported file must never end in one.
_EXECUTED_EXTENSIONS = frozenset(
    {"php", "php3", "php4", "php5", "php7", "phtml", "phar", "pht", "phps", "asp", "aspx", "asa", "asax", "ashx",
     "asmx", "cfm", "cfml", "cgi", "fcgi", "do", "jsp", "jspx", "jhtml", "pl", "shtml", "shtm", "stm", "ssi"}
)  # fmt: skip
_TYPED_EXTENSIONS = frozenset(extension for extensions in _EXTENSIONS_BY_TYPE.values() for extension in extensions)
_MAX_EXTENSION = 16


def extension_of(name: str) -> str:
    """Return the extension of a name in lower case, without the dot; empty without one.

    >>> extension_of("a.tar.GZ"), extension_of("a"), extension_of(".a")
    ('gz', '', '')
    """
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem and len(extension) <= _MAX_EXTENSION else ""


def is_known_extension(extension: str) -> bool:
    """Return whether an extension implies a media type and is not executed by servers."""
    return extension in _KNOWN_EXTENSIONS or extension in _TYPED_EXTENSIONS


def extension_to_add(name: str, mime: str | None, *, before_query: str | None = None) -> str:
    """Return the extension, with its dot, that a name needs to match its type; empty if it matches.

    Args:
        name: The name.
        mime: The sniffed media type; None if unknown.
        before_query: The extension of the URL's path, if the name includes a query.

    >>> [extension_to_add(name, "text/html") for name in ("a", "a.php", "a.HTM", "report.pdf", "a.png")]
    ['.html', '.html', '', '.html', '.html']
    >>> extension_to_add("a.gif", "image/png"), extension_to_add("a.zip", "application/zip")
    ('.png', '')
    >>> extension_to_add("a.php", None)
    '.bin'
    >>> extension_to_add("a.zip-x=1", None, before_query="zip"), extension_to_add("a", None)
    ('.zip', '')
    """
    extension = extension_of(name)
    accepted = _EXTENSIONS_BY_TYPE.get(_TYPE_ALIASES.get(mime or "", mime or ""))
    if accepted is not None:
        return "" if extension in accepted else f".{accepted[0]}"
    if extension and is_known_extension(extension):
        return ""
    if before_query and is_known_extension(before_query):
        return f".{before_query}"
    if mime in _USUAL_EXTENSIONS:
        return f".{_USUAL_EXTENSIONS[mime]}"
    if extension in _EXECUTED_EXTENSIONS:
        return ".txt" if mime is not None and mime.startswith("text/") else ".bin"
    return ""
