"""Numbers, shares and other people's text in words that need no explanation."""


def format_share(value: float | None) -> str:
    """Return a share for people: a whole percentage that says 0 or 100 only where it is; `n/a` of nothing.

    >>> share(0.684), share(0.999), share(0.0001), share(1.0), share(None)
    ('68 %', '> 99 %', '< 1 %', '100 %', 'n/a')
    """
    if value is None:
        return "n/a"
    if 0 < value < 0.005:
        return "< 1 %"
    if 0.995 <= value < 1:
        return "> 99 %"
    return f"{value:.0%}".replace("%", " %")


def escape_unprintable(text: str) -> str:
    r"""Return untrusted text in which nothing is hidden: whatever has no sign of its own is spelled out.

    >>> printable("http://a.example/\u202egnp.exe\x1b")
    'http://a.example/\\u202egnp.exe\\x1b'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def format_count(count: int, what: str) -> str:
    """Return how many there are of something whose plural ends in `s`.

    >>> counted(1, "request"), counted(1_200, "request")
    ('1 request', '1,200 requests')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
