"""Python model of index statistics: everything in dictionaries, independent of `unlost`."""

from collections import Counter, defaultdict

from tests.models.mementomap import host_labels

Capture = tuple[str, str]
"""The canonical key of a capture, and its date."""


def host_of(key: str) -> str:
    """Return the part before `)`."""
    return key.split(")", maxsplit=1)[0]


def page_of(key: str) -> str:
    """Return a key without its query."""
    return key.split("?", maxsplit=1)[0]


def host_nodes(host: str) -> list[str]:
    """Return all prefixes of a host, from the top."""
    labels = host_labels(host)
    return [",".join(labels[: depth + 1]) for depth in range(min(10, len(labels)))]


def path_nodes(page: str) -> list[str]:
    """Return all prefixes of a page's path, the root first."""
    host, path = page.split(")", 1)
    segments = [segment for segment in path.split("/") if segment]
    return [host + ")/" + "/".join(segments[:depth]) for depth in range(min(11, len(segments)) + 1)]


def levels(rows: list[Capture]) -> dict[str, tuple[Counter[int], Counter[int]]]:
    """Return per depth how many prefixes have how many pages, and how many parents have how many children."""
    below: dict[str, Counter[str]] = defaultdict(Counter)
    children: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for page in {page_of(key) for key, _ in rows}:
        hosts, paths = host_nodes(host_of(page)), path_nodes(page)
        for kind, first, nodes in (("H", 1, hosts), ("P", 0, paths)):
            for depth, node in enumerate(nodes):
                below[f"{kind}{depth + first}"][node] += 1
                above = nodes[depth - 1] if depth else node if kind == "P" else ""
                children[f"{kind}{depth + first}"][above].add(node)
    return {
        name: (Counter(nodes.values()), Counter(len(each) for each in children[name].values()))
        for name, nodes in below.items()
    }


def captures_by_uri(rows: list[Capture]) -> Counter[int]:
    """Return how many URI-Rs have how many captures."""
    return Counter(Counter(key for key, _ in rows).values())


def years(rows: list[Capture]) -> dict[str, tuple[int, int, int]]:
    """Return per year the URI-Rs, the new URI-Rs, and the captures."""
    first: dict[str, str] = {}
    for key, date in rows:
        first[key] = min(first.get(key, "9999"), date[:4])
    return {
        year: (
            len({key for key, date in rows if date.startswith(year)}),
            sum(1 for each in first.values() if each == year),
            sum(date.startswith(year) for _, date in rows),
        )
        for year in {date[:4] for _, date in rows}
    }


def label_depths(rows: list[Capture]) -> Counter[int]:
    """Return how many hosts have how many labels."""
    return Counter(min(11, len(host_labels(host))) for host in {host_of(key) for key, _ in rows})
