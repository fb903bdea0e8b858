"""Removes user names and passwords (userinfo, RFC 3986 section 3.2.1) from URLs in text that is logged."""

import re

# Userinfo may contain any character except those that end the authority (`/`, `?`, `#`), which a URL must escape there.
_USERINFO = re.compile(r"((?:https?:/|://)/*)[^/?#\\\s\"<>]*(?:@|%40)", re.IGNORECASE)
# In a URL that is percent-encoded inside another one, the encoded forms end the authority, too.
_ESCAPED_USERINFO = re.compile(
    r"((?:https?(?::|%3A)(?:/|%2F)|(?::|%3A)(?:/|%2F){2})(?:/|%2F)*)"
    r"(?:(?!%2F|%3F|%23)[^/?#\\\s\"<>])*(?:@|%40)",
    re.IGNORECASE,
)


def strip_userinfo(text: str) -> str:
    """Remove user names and passwords from all URLs in a text.

    >>> strip_userinfo("GET http://me:secret@example.com/@me failed")
    'GET http://example.com/@me failed'
    >>> strip_userinfo("https://archive.example/web/http%3A%2F%2Fme:p%40ss%40example.com%2F")
    'https://archive.example/web/http%3A%2F%2Fexample.com%2F'
    >>> strip_userinfo("http://me:sec%2Fret@example.com/ and http://me:it's@example.com/")
    'http://example.com/ and http://example.com/'
    """
    return _ESCAPED_USERINFO.sub(r"\1", _USERINFO.sub(r"\1", text))
