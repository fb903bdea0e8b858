"""Removes user names and passwords from text that is logged."""

import re

# An authority ends at a slash, a question mark, a hash sign, or their escaped forms inside another URL.
_USERINFO = re.compile(
    r"((?:https?(?::|%3A)(?:/|%2F)|(?::|%3A)(?:/|%2F){2})(?:/|%2F)*)"
    r"(?:(?!%2F|%3F|%23)[^/?#\\\s\"'<>])*(?:@|%40)",
    re.IGNORECASE,
)


def strip_userinfo(text: str) -> str:
    """Return text in which no URL has a user name or password.

    >>> strip_userinfo("GET http://me:secret@example.com/@me failed")
    'GET http://example.com/@me failed'
    >>> strip_userinfo("https://archive.example/web/http%3A%2F%2Fme:p%40ss%40example.com%2F")
    'https://archive.example/web/http%3A%2F%2Fexample.com%2F'
    """
    return _USERINFO.sub(r"\1", text)
