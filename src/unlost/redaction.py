"""Removes user names and passwords from URLs in text that is logged."""

import re

# The part before the host may have anything but what ends an authority. A password has those characters escaped.
_USERINFO = re.compile(r"((?:https?:/|://)/*)[^/?#\\\s\"<>]*(?:@|%40)", re.IGNORECASE)
# Of a URL that is escaped inside another one, the escaped forms end it, too.
_ESCAPED_USERINFO = re.compile(
    r"((?:https?(?::|%3A)(?:/|%2F)|(?::|%3A)(?:/|%2F){2})(?:/|%2F)*)"
    r"(?:(?!%2F|%3F|%23)[^/?#\\\s\"<>])*(?:@|%40)",
    re.IGNORECASE,
)


def strip_userinfo(text: str) -> str:
    """Return text in which no URL has a user name or password.

    >>> strip_userinfo("GET http://me:secret@example.com/@me failed")
    'GET http://example.com/@me failed'
    >>> strip_userinfo("https://archive.example/web/http%3A%2F%2Fme:p%40ss%40example.com%2F")
    'https://archive.example/web/http%3A%2F%2Fexample.com%2F'
    >>> strip_userinfo("http://me:sec%2Fret@example.com/ and http://me:it's@example.com/")
    'http://example.com/ and http://example.com/'
    """
    return _ESCAPED_USERINFO.sub(r"\1", _USERINFO.sub(r"\1", text))
