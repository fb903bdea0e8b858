"""The ways in which an archive fails to answer, in one word each, for counting and for choosing what to do next."""

FAILURE_KINDS = {
    "refused": "the connection was refused: the archive is down, or blocks the client; it is not queried for some time",
    "dns": "the name of the host could not be resolved",
    "unreachable": "no connection: no route to the host, or no connection in time",
    "proxy": "the proxy could not be reached, or makes no connection",
    "tls": "the connection could not be made safe: a certificate is wrong or out of date",
    "timeout": "no answer, or not all of it, within the time that there was",
    "reset": "the connection broke before the answer was whole",
    "status": "a status that says that the archive has a fault",
    "too-large": "an answer larger than asked for, also once it was uncompressed",
    "malformed": "an answer that is not in the form that it should have",
    "redirects": "redirects in a circle, too many of them, or to where an archive has no business to send us",
    "foreign": "a copy of another address or another date than the archive said",
}
"""The kinds, and what each means."""
