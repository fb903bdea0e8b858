"""Python model of map look-ups: every candidate key is looked up in a dict.

Independent of `unlost._core`; frequencies are texts, added as described in docs/map.md.
"""

import re


def rows(text: str, fields: int = 1) -> dict[str, list[str]]:
    """Return the frequencies of each key; `fields` is the number of key fields."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("!"):
            columns = line.split(" {")[0].split()
            found.setdefault(columns[0], []).append(columns[fields] if len(columns) > fields else "")
    return found


def candidates(key: str, *, rolled_up: bool = False) -> list[tuple[str, bool]]:
    """Return the candidate keys of a canonical key, the most specific first, and the page's own wildcard.

    An exclusion of the last kind does not apply to the page itself.
    """
    page = key.partition("?")[0]
    host, _, path = page.partition(")")
    keys = [(page, False), (page.removesuffix("/") if path == "/" else f"{page}/", False)]
    segments = [segment for segment in path.split("/") if segment]
    for count in range(len(segments), -1, -1):
        folder = "".join(f"/{segment}" for segment in segments[:count])
        keys.append((f"{host}){folder}/*", count == len(segments)))
    is_address = re.fullmatch(r"(\d{1,3}(,\d{1,3}){3}|\[[^]]*\])(:\d+)?", host)
    labels = [host] if is_address else host.split(",")
    keys += [(",".join(labels[:count]) + ",*", False) for count in range(len(labels), 0, -1)]
    if rolled_up:
        keys.append(("*", False))
    if is_address:
        keys += candidates(forward_ip(host) + ")" + path, rolled_up=rolled_up)
    return keys


def forward_ip(host: str) -> str:
    """Return an IP address as other tools write it: not reversed, without brackets."""
    name, _, port = host.rpartition("]")[2].partition(":")
    if host.startswith("["):
        return host[1 : host.index("]")] + (f":{port}" if port else "")
    return ".".join(reversed(name.split(","))) + (f":{port}" if port else "")


def lookup(
    held: dict[str, list[str]], key: str, *, rolled_up: bool = False
) -> tuple[bool, str | None, tuple[str, ...] | None]:
    """Return whether a page is held, the matching key, and the frequencies of its rows."""
    for candidate, is_own in candidates(key, rolled_up=rolled_up):
        if candidate in held:
            frequencies = held[candidate]
            is_held = any(may_be_held(text) for text in frequencies)
            if is_held or not is_own:
                return is_held, candidate, tuple(frequencies)
    return False, None, None


def may_be_held(frequency: str) -> bool:
    """Return whether a frequency is not certainly zero; unreadable ones are not."""
    found = re.fullmatch(r"0{1,18}-?(/\d{0,18}[+~-]?)?", frequency)
    return found is None
