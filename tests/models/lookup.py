"""The slow, obvious model of looking a page up in a map: every key that may answer, one after the other, in a dict.

Nothing from `unlost._core`; frequencies are texts, added as docs/map.md says.
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
    """Return the keys that may answer for a normal key, the most specific first, and which is the page's own wildcard.

    An exclusion of the last kind says nothing about the page itself.
    """
    page = key.partition("?")[0]
    host, _, path = page.partition(")")
    found = [(page, False), (page.removesuffix("/") if path == "/" else f"{page}/", False)]
    segments = [segment for segment in path.split("/") if segment]
    for count in range(len(segments), -1, -1):
        folder = "".join(f"/{segment}" for segment in segments[:count])
        found.append((f"{host}){folder}/*", count == len(segments)))
    is_address = re.fullmatch(r"(\d{1,3}(,\d{1,3}){3}|\[[^]]*\])(:\d+)?", host)
    labels = [host] if is_address else host.split(",")
    found += [(",".join(labels[:count]) + ",*", False) for count in range(len(labels), 0, -1)]
    if rolled_up:
        found.append(("*", False))
    if is_address:
        found += candidates(forwards(host) + ")" + path, rolled_up=rolled_up)
    return found


def forwards(host: str) -> str:
    """Return an address as other tools write it: not reversed, not in brackets."""
    name, _, port = host.rpartition("]")[2].partition(":")
    if host.startswith("["):
        return host[1 : host.index("]")] + (f":{port}" if port else "")
    return ".".join(reversed(name.split(","))) + (f":{port}" if port else "")


def lookup(
    held: dict[str, list[str]], key: str, *, rolled_up: bool = False
) -> tuple[bool, str | None, tuple[str, ...] | None]:
    """Return whether a page is held, the key that says so, and the frequencies of its rows."""
    for candidate, is_own in candidates(key, rolled_up=rolled_up):
        if candidate in held:
            frequencies = held[candidate]
            is_held = any(may_be_there(text) for text in frequencies)
            if is_held or not is_own:
                return is_held, candidate, tuple(frequencies)
    return False, None, None


def may_be_there(frequency: str) -> bool:
    """Return whether a frequency says anything but that nothing is held; what cannot be read does not."""
    found = re.fullmatch(r"0{1,18}-?(/\d{0,18}[+~-]?)?", frequency)
    return found is None
