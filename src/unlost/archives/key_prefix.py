"""Whether a key lies below the prefix of a lister query."""

from collections.abc import Callable

from unlost.uri import key


def below(prefix: str) -> Callable[[str], bool]:
    """Return a test of normal keys for what `Repository.under` means by a prefix. Raises UriError if it is none.

    As in the index of an archive, scheme, `www` and letter case make no difference.

    >>> [below("http://example.com/a/")(each) for each in ("com,example)/a/b", "com,example)/a", "com,example)/ab")]
    [True, True, False]
    >>> below("http://example.com/a")("com,example)/ab"), below("http://example.com")("com,example,shop)/")
    (True, False)
    >>> below("*.example.com")("com,example,shop)/"), below("*.example.com")("com,examples)/")
    (True, False)
    """
    if prefix.startswith("*."):
        host = key(f"http://{prefix[2:]}").partition(")")[0]
        return lambda each: each.startswith((f"{host})", f"{host},", f"{host}:"))
    begin = key(prefix)
    if prefix.endswith("/") and not begin.endswith("/"):
        return lambda each: each == begin or each.startswith((f"{begin}/", f"{begin}?"))
    return lambda each: each.startswith(begin)
