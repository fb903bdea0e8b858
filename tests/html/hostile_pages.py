"""Hostile pages."""

MB = 1 << 20

# Each is one or two megabytes that some parsers read in quadratic time or by recursion.
HOSTILE_PAGES: dict[str, tuple[bytes, str]] = {
    "open brackets": (b"<" * MB, "text/html"),
    "open elements": (b"<p>" * (MB // 2), "text/html"),
    "open elements of many names": (b"".join(b"<x%d>" % number for number in range(MB // 8)), "text/html"),
    "stray ends": (b"<a>" * (MB // 6) + b"</b>" * (MB // 6), "text/html"),
    "attributes": (b"<a " + b" href=x" * (MB // 7) + b">", "text/html"),
    "attributes of many names": (
        b"<a " + b"".join(b" x%d=y" % number for number in range(MB // 8)) + b">",
        "text/html",
    ),
    "bases": (b"<base href=/x>" * (MB // 14), "text/html"),
    "candidates": (b"<img srcset='" + b"a (,b " * (MB // 6) + b"'>", "text/html"),
    "commas": (b"<img srcset='" + b"," * MB + b"'>", "text/html"),
    "entities": (b"<a href='" + b"&#x" * (MB // 3) + b"'>", "text/html"),
    "comments": (b"<!--" * (MB // 4), "text/html"),
    "fallbacks": (b"<noscript>" * (MB // 10), "text/html"),
    "drawings": (b"<svg><title>" * (MB // 12), "text/html"),
    "style attribute": (b"<p style='" + b"(" * MB + b"'>", "text/html"),
    "zeros": (bytes(MB), "text/html"),
    "no UTF-8": (b"<a href=" + b"\xff" * MB, "text/html; charset=utf-8"),
    "labels": (b"<a href=http://" + b"a." * (MB // 2) + b">", "text/html"),
    "letters in a host": (b"<a href=http://" + "ä".encode() * (MB // 2) + b">", "text/html"),
    "blocks": (b"{" * MB, "text/css"),
    "functions": (b"a(" * MB, "text/css"),
    "blocks and names": (b"{@namespace " * (MB // 12), "text/css"),
    "bad addresses": (b"url(a'" * (MB // 6), "text/css"),
    "strings": (b"'\n" * MB, "text/css"),
    "elements in XML": (b"<urlset>" + b"<url>" * (MB // 5), "text/xml"),
    "brackets in XML": (b"<urlset>" + b"<" * MB, "text/xml"),
    "sections in XML": (b"<urlset>" + b"<![CDATA[" * (MB // 9), "text/xml"),
    "quotes in XML": (b"<svg " + b"a='" * (MB // 3), "image/svg+xml"),
    "document types": (b"<svg>" + b"<!DOCTYPE [" * (MB // 11), "image/svg+xml"),
    "styles in XML": (b"<svg>" + b"<style>" * (MB // 7), "image/svg+xml"),
    "entities in XML": (b"<urlset><loc>" + b"&" * MB, "text/xml"),
    "descriptions": (b"<rss>" + b"<description>&lt;p" * (MB // 18), "text/xml"),
}
