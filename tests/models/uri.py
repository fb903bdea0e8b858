"""Python model of `unlost.uri`: simple consecutive steps, independent of `unlost._core`.

It reads http and https URLs as described in docs/formats.md, by string operations and the standard library. It does not
reject invalid hosts.
"""

import ipaddress
import re


def surt(uri: str, rules: str = "wayback", *, as_key: bool = False) -> str:
    """Return the SURT of a URL; with `as_key`, its key."""
    scheme, host, port, tail = split(uri)
    labels = host_labels(host)
    written = [label if label.startswith("[") else escape_label(label, as_key=as_key) for label in labels]
    default = {"http": 80, "https": 443}[scheme]
    port_text = "" if port in (None, default) else f":{port}"
    return ",".join(written) + port_text + ")" + canonical_tail(tail, rules, as_key=as_key)


def split(uri: str) -> tuple[str, str, int | None, str]:
    """Split a URL into scheme, host, port, and path with query, as the URL standard does."""
    scheme, host, port, tail = split_unresolved(uri)
    path, mark, query = tail.partition("?")
    return scheme, host, port, resolve_dots(path) + mark + query


def split_unresolved(uri: str) -> tuple[str, str, int | None, str]:
    """Split a URL without resolving dots in the path."""
    uri = re.sub(r"[\t\n\r]", "", uri.strip("".join(map(chr, range(33)))))
    found = re.match(r"(?i)(https?):[/\\]*", uri)
    scheme, rest = (found[1].lower(), uri[found.end() :]) if found else ("http", uri.removeprefix("//"))
    authority = re.split(r"[/\\?#]", rest, maxsplit=1)[0]
    tail = rest[len(authority) :].split("#")[0]
    host_port = authority.rpartition("@")[2]
    host, _, port = host_port.partition(":") if not host_port.startswith("[") else split_bracketed(host_port)
    return scheme, host, int(port) if port else None, tail


def split_bracketed(text: str) -> tuple[str, str, str]:
    """Split a bracketed IPv6 address from its port."""
    end = text.index("]") + 1
    return text[:end], ":", text[end + 1 :]


def resolve_dots(path: str) -> str:
    """Resolve `.` and `..`, also escaped ones, before decoding, as the URL standard does."""
    segments: list[str] = []
    parts = re.split(r"[/\\]", path)[1:]
    for i, part in enumerate(parts):
        plain = re.sub("(?i)%2e", ".", part)
        if plain == "..":
            segments = segments[:-1]
        elif plain != ".":
            segments.append(part)
            continue
        if i == len(parts) - 1:
            segments.append("")
    return "/" + "/".join(segments)


def host_labels(host: str) -> list[str]:
    """Return the labels from the top down."""
    if host.startswith("["):
        return [f"[{ipv6(host[1:-1])}]"]
    labels = [label for label in decode(host).lower().split(".") if label]
    labels = [label if label.isascii() else label.encode("idna").decode() for label in labels]
    while len(labels) > 1 and re.fullmatch(r"www\d*", labels[0]):
        labels = labels[1:]
    if re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        return str(ipaddress.IPv4Address(ipv4(labels))).split(".")[::-1]
    return labels[::-1]


def ipv6(text: str) -> str:
    """Return an IPv6 address in the notation of the URL standard, without dots (unlike Python from 3.13)."""
    address = ipaddress.IPv6Address(text)
    if address.ipv4_mapped is None:
        return str(address)
    number = int(address.ipv4_mapped)
    return f"::ffff:{number >> 16:x}:{number & 0xFFFF:x}"


def ipv4(parts: list[str]) -> int:
    """Return an IPv4 address in any of the old notations as a number."""
    numbers = []
    for part in parts:
        hexadecimal, octal = part.startswith("0x"), part.startswith("0") and len(part) > 1
        numbers.append(int(part[2:] or "0", 16) if hexadecimal else int(part, 8) if octal else int(part))
    *bytes_, rest = numbers
    return sum(byte << 8 * (3 - i) for i, byte in enumerate(bytes_)) + rest


def escape_label(label: str, *, as_key: bool) -> str:
    """Escape characters with a meaning in SURTs and map files."""
    special = ",()!%" + ("*+" if as_key else "")
    return "".join(f"%{ord(char):02x}" if char in special else char for char in label)


def canonical_tail(tail: str, rules: str, *, as_key: bool) -> str:
    """Return the canonical path and query."""
    lower = rules == "wayback"
    text = decode(tail.encode("utf-8", "surrogateescape").decode("latin-1"))
    if lower:
        text = ascii_lower(text)
    path, _, query = text.partition("?")
    segments: list[str] = []
    for segment in re.split(r"[/\\]", path):
        if segment == "..":
            segments = segments[:-1]
        elif segment not in ("", "."):
            segments.append(segment)
    if lower:
        segments = without_asp_sessions(segments)
    written = "/" + "/".join(escape(segment, lower=lower, as_key=as_key) for segment in segments)
    while True:
        before = query
        query = ascii_lower(decode(without_sessions(query))) if lower else query
        parameters = sorted(
            query.split("&"), key=lambda text: parameter_order(escape(text, lower=lower, as_key=as_key))
        )
        query = "&".join(parameters)
        if query == before:
            return written + ("?" + escape(query, lower=lower, as_key=as_key) if query else "")


def decode(text: str) -> str:
    """Decode percent escapes repeatedly until nothing changes."""
    while True:
        decoded = re.sub("%([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
        if decoded == text:
            return text
        text = decoded


def escape(text: str, *, lower: bool, as_key: bool) -> str:
    """Escape control characters, space, non-ASCII characters, `#` and `%`."""
    digits = "02x" if lower else "02X"
    special = "#%" + ("*" if as_key else "")
    return "".join(f"%{ord(c):{digits}}" if not "!" <= c <= "~" or c in special else c for c in text)


def ascii_lower(text: str) -> str:
    """Convert ASCII letters to lower case."""
    return "".join(char.lower() if char.isascii() else char for char in text)


def without_asp_sessions(segments: list[str]) -> list[str]:
    """Remove ASP.NET session segments before the last `.aspx` page."""
    pages = [i for i, segment in enumerate(segments) if ".aspx" in segment]
    token = "[0-9a-z]{24}"
    pattern = rf"\((?:{token}|(?:[a-z]\({token}\))+)\)"
    last = pages[-1] if pages else 0
    return [segment for i, segment in enumerate(segments) if i >= last or not re.fullmatch(pattern, segment)]


def without_sessions(query: str) -> str:
    """Remove session ids with the following `&`, the last first, pattern by pattern, until none is left."""
    patterns = [
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    ]
    while True:
        for pattern in patterns:
            if found := re.fullmatch(rf"(.*)(?:{pattern})(?:&(.*))?", query, re.DOTALL):
                query = found[1] + (found[2] or "")
                break
        else:
            return query


def parameter_order(parameter: str) -> tuple[str, bool, str]:
    """Sort by name, then parameters without a value, then by value."""
    name, equals, value = parameter.partition("=")
    return name, bool(equals), value


def alternative_keys(uri: str, rules: str = "wayback") -> set[str]:
    """Return the keys that other tools give a URL, including its own; not for hosts that IDNA 2003 maps differently.

    Other tools write default ports, drop port 0, and decode escapes before they resolve `..`.
    """
    scheme, _, port, _ = split(uri)
    host, _, resolved = surt(uri, rules, as_key=True).partition(")")
    hosts = {host, host.removesuffix(":0")}
    if port == {"http": 80, "https": 443}[scheme]:
        hosts.add(f"{host}:{port}")
    return {
        f"{host}){tail}"
        for host in hosts
        for tail in (resolved, canonical_tail(split_unresolved(uri)[3], rules, as_key=True))
    }


def key(policy: str, surt: str, suffixes: set[str]) -> str:
    """Return the URI-Key of a canonical key under a policy; `suffixes` are dotted and without wildcards."""
    host_port, tail = surt.split(")", 1)
    path, mark, query = tail.partition("?")
    del mark
    segments = [segment for segment in path.split("/") if segment]
    address = re.fullmatch(r"(\d+(?:,\d+){3}|\[.*\])(:\d+)?", host_port)
    labels = [host_port] if address else host_port.split(",")
    if policy == "URIR":
        return surt
    if policy.startswith("H"):
        host_limit, path_limit = policy[1:].split("P")
        stored = labels if host_limit == "x" else labels[: int(host_limit)]
        depth = 0 if len(stored) < len(labels) else len(segments) if path_limit == "x" else int(path_limit)
        return ",".join(stored) + ")/" + "/".join(segments[:depth])
    labels = [address[1]] if address else host_port.split(":")[0].split(",")
    registered = 1 if address else registered_length(labels, suffixes)
    initial = segments[0][0] if segments and re.match("[0-9a-zA-Z]", segments[0]) else "-"
    parameters = [parameter for parameter in query.split("&") if parameter]
    counts = [str(len(labels) - registered), str(len(segments)), str(len(parameters)), initial]
    kept_counts = counts[: ["DDom", "DSub", "DPth", "DQry", "DIni"].index(policy)]
    return ",".join(labels[:registered]) + ")/" + "/".join(kept_counts)


def registered_length(labels: list[str], suffixes: set[str]) -> int:
    """Return the number of labels of the registered domain."""
    longest = max([1, *(n for n in range(1, len(labels) + 1) if ".".join(labels[:n][::-1]) in suffixes)])
    return min(longest + 1, len(labels))
