"""Settings for Netlify: `_redirects` and `_headers`, by the words of its documentation."""

import re
from dataclasses import replace
from urllib.parse import quote

from unlost.recover.export.hosting.content_types import lower_extension
from unlost.recover.export.hosting.old_addresses import RedirectRules, RedirectRule
from unlost.recover.export.hosting.rule_words import skipped_comment
from unlost.recover.export.hosting.site_address import file_url_path, served_paths

_NETLIFY_MANY_RULES = 10_000
"""From so many rules on the documentation expects difficulties."""

# Parameters are given as words `name=value`. How escapes in them compare is nowhere said: so only what needs none.
_NETLIFY_PARAMETER = re.compile(r"([A-Za-z0-9._~-]+)=([A-Za-z0-9._~-]+)")
_NETLIFY_TYPES = {
    "css": "text/css; charset=utf-8",
    "gif": "image/gif",
    "html": "text/html; charset=utf-8",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "pdf": "application/pdf",
    "png": "image/png",
}
_NETLIFY_HEAD = "# The old addresses of {name}, for Netlify. Nothing is to be done: it reads this file where it is."


def netlify_files(old: RedirectRules) -> dict[str, bytes]:
    """Return the files for Netlify by name."""
    left = list(old.skipped)
    lines: list[str] = []
    told: dict[str, str] = {}
    for rule in sorted(old.rules, key=lambda rule: (rule.host is None, -(rule.query or "").count("="))):
        kind = _untypical_type(old, rule.target) if rule.status == 200 else None
        # Headers are set by paths, without queries: what needs one has to be asked for by its own path.
        moves = kind is not None and rule.query is not None
        reason, words = _netlify_line(replace(rule, status=301, target=file_url_path(rule.target)) if moves else rule)
        if reason:
            left.append((rule.uri, reason))
            continue
        if words:
            lines.append(words)
        if kind is not None and rule.query is None and rule.host is None:
            told[_netlify_path(rule.path)] = kind
    name = re.sub(r"[^a-z0-9.-]", "_", old.name)
    head = [_NETLIFY_HEAD.format(name=name), *skipped_comment(sorted(left))]
    if len(lines) >= _NETLIFY_MANY_RULES:
        head.append(f"# {len(lines)} rules are many for Netlify: a deploy may fail.")
    return {
        "_redirects": "\n".join([*head, *lines, ""]).encode(),
        "_headers": "\n".join([_NETLIFY_HEAD.format(name=name), *_netlify_headers(old, told), ""]).encode(),
    }


def _netlify_line(rule: RedirectRule) -> tuple[str, str]:
    """Return why a rule cannot be written, or its line, empty if Netlify does it by itself."""
    if "//" in rule.uri.partition("://")[2].partition("?")[0]:
        return "has doubled slashes, of which Netlify says nothing", ""
    parameters: list[str] = []
    for part in (rule.query or "").split("&") if rule.query else []:
        found = _NETLIFY_PARAMETER.fullmatch(part)
        if found is None or found[1] in (each.partition("=")[0] for each in parameters):
            return "has a query that Netlify's rules do not have", ""
        parameters.append(part)
    path = _netlify_path(rule.path)
    to = file_url_path(rule.target) if rule.status == 200 else _netlify_literal(rule.target)
    if not parameters and path.rstrip("/") == to.rstrip("/"):
        return "", ""  # slashes at the end make no difference to it
    start = path if rule.host is None else f"http://{rule.host}{path}"
    return "", " ".join([start, *parameters, to, f"{rule.status}!"])


def _netlify_path(path: bytes) -> str:
    """Return a path as it stands in a rule: `*` and `:` are escaped as well, which would stand for other things."""
    return quote(path, safe="/-._~")


def _netlify_literal(to: str) -> str:
    scheme, separator, rest = to.partition("://") if not to.startswith("/") else ("", "", to)
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host}{slash}" + path.replace(":", "%3A").replace("*", "%2A")


def _netlify_headers(old: RedirectRules, declared: dict[str, str]) -> list[str]:
    """Return what says the types of files that their names do not tell, under each address that they have."""
    types = dict(declared)
    for path in old.files:
        kind = _untypical_type(old, path)
        if kind is not None:
            types.update((_netlify_path(each), kind) for each in served_paths(path))
    return [line for path, kind in sorted(types.items()) for line in (path, f"  Content-Type: {kind}")]


def _untypical_type(old: RedirectRules, path: str) -> str | None:
    """Return the type of a file if its name does not tell it."""
    kind = old.types.get(path)
    return None if kind is None or kind.lower() == _NETLIFY_TYPES.get(lower_extension(path)) else kind
