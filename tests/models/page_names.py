"""Python model of `name_of`: simple consecutive steps, independent of `unlost._core`.

Like the model of `unlost.uri`, whose URL parsing it shares, it does not reject invalid hosts.
"""

import ipaddress
import re

from tests.models import uri as addresses

TOKEN = "[0-9a-zA-Z]{32}"
SESSION = re.compile(rf"(?i:jsessionid|phpsessid|sid)={TOKEN}|(?i:aspsessionid)[a-zA-Z]{{8}}=[a-zA-Z]{{24}}")


def name(uri: str, *, ignore_case: bool = False) -> str:
    """Return the page name of a URL."""
    _, host, port, tail = addresses.split(uri)
    tail = tail.encode("utf-8", "surrogateescape").decode("latin-1")
    path, _, query = tail.partition("?")
    port_text = "" if port in (None, 80, 443) else f":{port}"
    text = host_name(host) + port_text + path_name(path) + query_name(query)
    return text.lower() if ignore_case else text


def host_name(host: str) -> str:
    """Return a host in lower case, without `www` and extra dots."""
    if host.startswith("["):
        return f"[{addresses.ipv6(host[1:-1])}]"
    labels = [label for label in addresses.decode(host).lower().split(".") if label]
    if re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        return str(ipaddress.IPv4Address(addresses.ipv4(labels)))
    while len(labels) > 2 and labels[0] == "www":
        labels = labels[1:]
    return ".".join(label if label.isascii() else label.encode("idna").decode() for label in labels)


def path_name(path: str) -> str:
    """Return a path with printable escapes decoded and insignificant parts removed."""
    path = re.sub("%([0-9a-fA-F]{2})?", decode_escape, path)
    path = "".join("+" if char == " " else char if "!" <= char <= "~" else escaped(char) for char in path)
    segments: list[str] = []
    for part in re.split(r"[/\\]", path):
        segment = re.sub(rf"(?:(?i:;jsessionid=){TOKEN})+$", "", part)
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    lower = [segment.lower() for segment in segments]
    stored = addresses.without_asp_sessions(lower)
    if len(stored) < len(lower):
        last = max(i for i, segment in enumerate(lower) if ".aspx" in segment)
        segments = [each for i, each in enumerate(segments) if i >= last or lower[i] in stored]
    while segments and segments[-1].lower() in ("index.html", "index.htm", "default.htm"):
        segments = segments[:-1]
    return "/" + "/".join(segments)


def decode_escape(found: re.Match[str]) -> str:
    """Return the character of a percent escape, if it is valid."""
    if found[1] is None:
        return "%25"
    char = chr(int(found[1], 16))
    if char == " ":
        return "+"
    return char if "!" <= char <= "~" and char not in "#%/?" else found[0].upper()


def query_name(query: str) -> str:
    """Return a query with its question mark, without session ids."""
    parameters = query.split("&")
    pair = [re.compile(rf"(?is){half}=.+") for half in ("cfid", "cftoken")]
    if all(any(half.fullmatch(each) for each in parameters) for half in pair):
        parameters = [each for each in parameters if not any(half.fullmatch(each) for half in pair)]
    query = "&".join(each for each in parameters if not SESSION.fullmatch(each))
    query = re.sub("%([0-9a-fA-F]{2})?", lambda found: "%25" if found[1] is None else found[0].upper(), query)
    query = "".join(char if "!" <= char <= "~" and char not in "\"#'<>[\\]^`{|}" else escaped(char) for char in query)
    return f"?{query}" if query else ""


def escaped(char: str) -> str:
    """Return a byte as a percent escape."""
    return f"%{ord(char):02X}"
