"""Pages of strangers, to look at: under headers by which none of them can act."""

_RESOURCE_DIRECTIVES = ("img-src", "font-src", "media-src", "frame-src")


def sandbox_headers(source: str) -> dict[str, str]:
    """Return the headers of answers with pages of strangers: they load their own files, and are seen.

    place: the address below which these are; `'none'` for none. Pages have no origin, run no script, send no form, open
    no window and refresh to nowhere.

    >>> headers_for("http://127.0.0.1/site/")["content-security-policy"][:30]
    "sandbox; default-src 'none'; i"
    """
    own = "; ".join(f"{each} {source}" for each in _RESOURCE_DIRECTIVES)
    policy = f"sandbox; default-src 'none'; {own}; style-src {source} 'unsafe-inline'"
    return {
        "content-security-policy": f"{policy}; form-action 'none'; base-uri 'none'",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "cross-origin",  # the page that asks has no origin
    }
