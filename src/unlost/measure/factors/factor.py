"""The twelve factors, and what of each is known of a resource."""

from dataclasses import dataclass
from math import log10
from urllib.parse import urlsplit

from unlost.measure.factors.rows import UNKNOWN_VALUE


@dataclass(frozen=True, slots=True)
class RecoveryFactor:
    """One factor.

    name: in words, as people read it. unit: what its number is in a model. source: where that is from. marks: the lower
        ends of the groups in which resources are counted, in the number's own unit; none for one of words.
    """

    name: str
    unit: str
    source: str
    bin_edges: tuple[float, ...] = ()


_POWER_EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
_COUNT_EDGES = (0.0, log10(2), *(log10(10**power + 1) for power in range(1, 8)))  # none, 1 to 9, 10 to 99, and so on
FACTORS = (
    RecoveryFactor("external links", "powers of ten, of one more", "the file of --backlinks, by host", _COUNT_EDGES),
    RecoveryFactor("internal links", "powers of ten, of one more", "copies that came back, whose links were followed",
           (0.0, log10(2), log10(3), log10(5), log10(9), log10(33), log10(1001))),
    RecoveryFactor("rank", "powers of ten", "the file of --ranks, by host; 1 is the best", _POWER_EDGES),
    RecoveryFactor("hops", "links", "the shortest way from where the recovery began", (0, 1, 2, 3, 4, 5, 10)),
    RecoveryFactor("path depth", "segments", "the address", (0, 1, 2, 3, 4, 5, 10)),
    RecoveryFactor("query parameters", "parameters", "the address", (0, 1, 2, 3, 4, 10)),
    RecoveryFactor("age", "years", "from the oldest copy that links to it to the newest copy of the site",
           (0, 1, 2, 3, 5, 10, 20)),
    RecoveryFactor("birth rate", "share", "of what archives list of a year, what no year before had; the mean of all years but "
           "the first, by site", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)),
    RecoveryFactor("site size", "powers of ten", "resources that were looked for, by site", _POWER_EDGES),
    RecoveryFactor("resource size", "powers of ten, of one more byte", "the site of --original: nobody else knows the size of "
           "what is missing", _COUNT_EDGES),
    RecoveryFactor("type", "", "what the address and its use make likely, since nobody knows the type of what is missing"),
    RecoveryFactor("top-level domain", "", "the address"),
)  # fmt: skip
"""All of them. Those of words are the last two."""

NUMERIC_FACTORS = 10
"""How many have numbers."""

TYPES = ("page", "image", "document", "other")
TLDS = ("com", "org", "net", "edu", "gov", "country", "other")

_IMAGES = frozenset({"gif", "jpg", "jpeg", "png", "bmp", "ico", "svg", "webp", "tif", "tiff"})
_DOCUMENTS = frozenset(
    {"pdf", "ps", "eps", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "rtf", "odt", "ods", "odp", "txt"}
)
_PAGES = frozenset({"", "htm", "html", "shtml", "xhtml", "php", "php3", "asp", "aspx", "jsp", "cgi", "pl", "cfm"})
_MAX_EXTENSION_LENGTH = 5  # letters: what is longer is no ending
_COUNTRY_CODE_LENGTH = 2  # letters


@dataclass(frozen=True, slots=True)
class UrlFeatures:
    """What an address says. parameters: of its query. kind, tld: of `TYPES` and `TLDS`."""

    parameters: int
    kind: str
    tld: str
    host: str


def extract_url_features(uri: str, use: str) -> UrlFeatures:
    """Return what an address says, and how pages use it. Never raises.

    >>> parts_of("http://www.lost.example/a/b/c.GIF?x=1&y", "requisite")
    Parts(parameters=2, kind='image', tld='other', host='www.lost.example')
    >>> parts_of("http://lost.co.uk/a/", "page")
    Parts(parameters=0, kind='page', tld='country', host='lost.co.uk')
    """
    try:
        found = urlsplit(uri)
        host = (found.hostname or "").rstrip(".")
    except ValueError:
        return UrlFeatures(0, "other", "other", "")
    name, dot, ending = found.path.rpartition("/")[2].rpartition(".")
    ending = ending.lower() if dot and name and len(ending) <= _MAX_EXTENSION_LENGTH else ""
    parameters = sum(bool(each) for each in found.query.replace(";", "&").split("&"))
    return UrlFeatures(parameters, _kind(ending, use), _tld(host), host)


def _kind(ending: str, use: str) -> str:
    if ending in _IMAGES:
        return "image"
    if ending in _DOCUMENTS:
        return "document"
    return "page" if ending in _PAGES and use != "requisite" else "other"


def _tld(host: str) -> str:
    label = host.rpartition(".")[2].lower()
    if label in TLDS[:5]:
        return label
    return "country" if len(label) == _COUNTRY_CODE_LENGTH and label.isalpha() else "other"


def log10_or_unknown(value: float | None, offset: float = 0.0) -> float:
    """Return a number as a power of ten; unknown for none, and for what has no power."""
    return log10(value + offset) if value is not None and value + offset > 0 else UNKNOWN_VALUE
