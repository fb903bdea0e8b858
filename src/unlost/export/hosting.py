"""Configuration of nginx, Apache and Netlify for an exported site."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from urllib.parse import quote

from unlost.export.links import ExportedResource
from unlost.export.redirects import (
    INDEX_NAME,
    RedirectRule,
    RedirectRules,
    exact_pattern,
    file_url_path,
    lower_extension,
    path_bytes,
    redirect_rules,
    served_paths,
    skipped_comment,
    types_by_extension,
    untypical_files,
)

_APACHE_MAX_NAME = 255
"""Maximum size of a path segment in bytes: Apache looks each segment up in the file system."""
_APACHE_MIN_GROUP = 4
"""Minimum number of rules for one path for which a further rule skips them all if the path does not match."""
_APACHE_HEAD = """\
# The old addresses of {name}, for Apache with mod_rewrite. It is read where the site is the root of a host that has
# `AllowOverride FileInfo Indexes`. Apache reads it anew for each request: with more than some thousand rules, put
#
#     <Directory "/srv/site">
#         AllowOverride None
#         Include "/srv/site/.htaccess"
#     </Directory>
#
# into the settings of the host instead. Rules here: {count}
"""
# The files of a recovered site are untrusted, and never executed.
_APACHE_SETTINGS = f"""\
DirectoryIndex {INDEX_NAME}
AddDefaultCharset Off
<FilesMatch ".">
    SetHandler default-handler
</FilesMatch>
"""
_APACHE_REWRITING = """\
RewriteEngine On
RewriteBase /
RewriteRule ^(?:_nginx/.*|_headers|_redirects)$ - [R=404,L]
"""


def apache_files(site_rules: RedirectRules) -> dict[str, bytes]:
    """Return the configuration for Apache, by file name."""
    by_extension = types_by_extension(site_rules.files, site_rules.types)
    skipped = list(site_rules.skipped)
    rules = []
    for rule in site_rules.rules:
        reason = _apache_refusal(rule)
        if reason:
            skipped.append((rule.uri, reason))
        else:
            rules.append(rule)
    untypical = untypical_files(site_rules.types, by_extension)
    name = re.sub(r"[^a-z0-9.-]", "_", site_rules.name)
    lines = [
        *_APACHE_HEAD.format(name=name, count=len(rules) + len(untypical)).splitlines(),
        *skipped_comment(sorted(skipped)),
        *_APACHE_SETTINGS.splitlines(),
        *(f'AddType "{media_type}" .{extension}' for extension, media_type in by_extension.items()),
        *_APACHE_REWRITING.splitlines(),
    ]
    # Rules for one host precede those for any host.
    for is_any, same_scope in groupby(
        sorted(rules, key=lambda rule: rule.host is None), key=lambda rule: rule.host is None
    ):
        del is_any
        for path, rules_of_path in groupby(same_scope, key=lambda rule: rule.path):
            group = list(rules_of_path)
            if len(group) >= _APACHE_MIN_GROUP:
                lines.append(f'RewriteRule "!^{exact_pattern(path[1:])}\\z" - [S={len(group)}]')
            for rule in group:
                lines += _apache_lines(rule)
    # A file served by a rule passes through the rules a second time, under its own path.
    lines += [
        f'RewriteRule "^{exact_pattern(path_bytes(path))}\\z" - "[T={media_type}]"'
        for path, media_type in untypical.items()
    ]
    return {".htaccess": "\n".join([*lines, ""]).encode()}


def _apache_refusal(rule: RedirectRule) -> str:
    if re.search(r"%2f", rule.uri.partition("?")[0], re.IGNORECASE):
        return "has an escaped slash, which Apache refuses"
    segments = rule.path.split(b"/")
    if max(map(len, segments)) > _APACHE_MAX_NAME:
        return "has too long a name for Apache"
    if any(segment.lower().startswith(b".ht") for segment in segments):
        return "has a name that Apache hides"
    return ""


def _apache_lines(rule: RedirectRule) -> list[str]:
    query = "" if rule.query is None else exact_pattern(rule.query.encode(), any_case_of_escapes=True)
    lines = [f'RewriteCond %{{QUERY_STRING}} "^{query}\\z"']
    if rule.host is not None:
        lines.append(f'RewriteCond %{{HTTP_HOST}} "^{exact_pattern(rule.host.encode())}(?::[0-9]+)?\\z" [NC]')
    if rule.status == 200:
        target, flags = quote(path_bytes(rule.target), safe="/-._~"), "QSD,L"
    else:
        target, flags = rule.target, f"R={rule.status},NE,QSD,L"
        if "?" in target:
            flags = flags.replace("QSD,", "")  # it has a query of its own
    substitution = re.sub(r"([%$\\])", r"\\\1", target)
    return [*lines, f'RewriteRule "^{exact_pattern(rule.path[1:])}\\z" "{substitution}" [{flags}]']


_NGINX_MAX_WORD = 4_000
"""Maximum size of a word. nginx rejects configurations with a word of 4,096 bytes or more."""
_CONTROL_CHARACTERS = re.compile(rb"[\x00-\x1f\x7f]")
_NGINX_HTTP = """\
# The old addresses of {name}. Include this file at the level of `http`, and server.conf in the `server` of the site:
#
#     include /srv/site/_nginx/http.conf;
#     server {{
#         listen 80;
#         root /srv/site;
#         include /srv/site/_nginx/server.conf;
#     }}
#
# If nginx finds map_hash_bucket_size or map_hash_max_size twice, keep the larger numbers and take the others out.
"""
_NGINX_SERVER = """\
# The old addresses of {name}. Include this file in the `server` of the site; http.conf, beside it, says where and how.

index {index};
location ^~ /_nginx/ {{ return 404; }}
location = /.htaccess {{ return 404; }}
location = /_headers {{ return 404; }}
location = /_redirects {{ return 404; }}
"""


def nginx_files(site_rules: RedirectRules) -> dict[str, bytes]:
    """Return the configuration for nginx, by file name: one for the `http` level, one for `server`."""
    variable = "unlost_" + re.sub("[^a-z0-9]", "_", site_rules.name)
    by_extension = types_by_extension(site_rules.files, site_rules.types)
    untypical = untypical_files(site_rules.types, by_extension)
    untypical_types = sorted(set(untypical.values()))
    prefix = _nginx_free_prefix(site_rules.files)
    prefixes = {path: f"{prefix}{untypical_types.index(media_type)}/" for path, media_type in untypical.items()}
    skipped = list(site_rules.skipped)

    files = {each: path for path in site_rules.files for each in served_paths(path)}
    typed = {each: _nginx_path(prefixes[path], path) for each, path in files.items() if path in prefixes}
    any_host: dict[bytes, bytes] = {}
    one_host: dict[bytes, bytes] = {}
    for rule in site_rules.rules:
        key = (rule.host or "").encode() + rule.path + (b"" if rule.query is None else f"?{rule.query}".encode())
        is_file = rule.status == 200
        value = (
            _nginx_path(prefixes.get(rule.target, "/"), rule.target)
            if is_file
            else f"{rule.status} {rule.target}".encode()
        )
        entries = any_host if rule.host is None else one_host
        if len(_nginx_map_entry(key, value, by_number=_CONTROL_CHARACTERS.search(key) is not None)) > _NGINX_MAX_WORD:
            skipped.append((rule.uri, "too long"))
        elif entries.setdefault(key, value) != value:
            skipped.append((rule.uri, "the server cannot tell it from another address"))

    maps = [
        *_nginx_map("$uri", f"${variable}_type", b'""', typed, files),
        *_nginx_map(
            "$uri$is_args$args", f"${variable}_path", f"${variable}_type".encode(), any_host, [*any_host, *files]
        ),
        *_nginx_map("$host$uri$is_args$args", f"${variable}", f"${variable}_path".encode(), one_host, one_host),
    ]
    dollar = b'geo $unlost_dollar { default "$"; }' if any(b"${unlost_dollar}" in line for line in maps) else b""
    longest = max((len(key) for each in (typed, any_host, one_host) for key in each), default=0)
    sizes = [
        f"map_hash_bucket_size {max(128, 1 << (longest + 32).bit_length())};",
        f"map_hash_max_size {max(2048, 2 * max(len(typed), len(any_host), len(one_host)))};",
    ]
    head = [
        *_NGINX_HTTP.format(name=_printable_name(site_rules.name)).splitlines(),
        *skipped_comment(sorted(skipped)),
        *sizes,
    ]
    server = [
        *_NGINX_SERVER.format(name=_printable_name(site_rules.name), index=INDEX_NAME).splitlines(),
        *_nginx_types(by_extension),
    ]
    for number, media_type in enumerate(untypical_types):
        server += [
            f"location ^~ {prefix}{number}/ {{",
            "    internal;",
            "    types { }",
            f'    default_type "{media_type}";',
            f'    rewrite "(?s)^{exact_pattern(f"{prefix}{number}".encode())}(/.*)\\z" $1 break;',
            "}",
        ]
    server += [
        f'if (${variable} ~ "^301 (.+)$") {{ return 301 $1; }}',
        f'if (${variable} ~ "^302 (.+)$") {{ return 302 $1; }}',
        f"if (${variable}) {{ rewrite ^ ${variable}? last; }}",
    ]
    return {
        "_nginx/http.conf": b"\n".join([*(line.encode() for line in head), dollar, *maps, b""]),
        "_nginx/server.conf": "\n".join([*server, ""]).encode(),
    }


def _nginx_free_prefix(files: Iterable[str]) -> str:
    """Return a path prefix that no file has. Internal locations below it serve files with untypical media types."""
    firsts = {path.partition("/")[0] for path in files}
    name = ".unlost-type-"
    while any(first.startswith(name) for first in firsts):
        name = f"{name}-"
    return f"/{name}"


def _nginx_path(prefix: str, path: str) -> bytes:
    return prefix.encode() + path_bytes(path)


def _nginx_map(
    source: str, name: str, default: bytes, entries: dict[bytes, bytes], known: Iterable[bytes]
) -> list[bytes]:
    # nginx ignores letter case in map keys, so keys that differ only in case are written as regular expressions.
    folded = Counter(key.lower() for key in set(known))
    lines = [f"map {source} {name} {{".encode(), b"    default " + default + b";"]
    for key, value in sorted(entries.items()):
        by_number = folded[key.lower()] > 1 or _CONTROL_CHARACTERS.search(key) is not None
        lines.append(b"    " + _nginx_map_entry(key, value, by_number=by_number))
    return [*lines, b"}"]


def _nginx_map_entry(key: bytes, value: bytes, *, by_number: bool) -> bytes:
    word = f'"~^{exact_pattern(key)}\\z"'.encode() if by_number else b'"%s"' % _nginx_quote(key)
    return b'%s "%s";' % (word, _nginx_quote(value).replace(b"$", b"${unlost_dollar}"))


def _nginx_quote(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def _nginx_types(by_extension: dict[str, str]) -> list[str]:
    if not by_extension:
        return []
    return ["types {", *(f'    "{media_type}" {extension};' for extension, media_type in by_extension.items()), "}"]


def _printable_name(name: str) -> str:
    return re.sub(r"[^a-z0-9.-]", "_", name)


_NETLIFY_MANY_RULES = 10_000
"""Number of rules above which the documentation of Netlify warns of problems."""
# Parameters are written as `name=value`. How escapes in them are compared is undocumented, so only plain ones are used.
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


def netlify_files(site_rules: RedirectRules) -> dict[str, bytes]:
    """Return the configuration for Netlify, by file name."""
    skipped = list(site_rules.skipped)
    lines: list[str] = []
    headers: dict[str, str] = {}
    for rule in sorted(site_rules.rules, key=lambda rule: (rule.host is None, -(rule.query or "").count("="))):
        media_type = _untypical_type(site_rules, rule.target) if rule.status == 200 else None
        # Headers are set by path, without the query: a file that needs one is redirected to its own path.
        is_redirected = media_type is not None and rule.query is not None
        reason, line = _netlify_line(
            replace(rule, status=301, target=file_url_path(rule.target)) if is_redirected else rule
        )
        if reason:
            skipped.append((rule.uri, reason))
            continue
        if line:
            lines.append(line)
        if media_type is not None and rule.query is None and rule.host is None:
            headers[_netlify_path(rule.path)] = media_type
    name = re.sub(r"[^a-z0-9.-]", "_", site_rules.name)
    head = [_NETLIFY_HEAD.format(name=name), *skipped_comment(sorted(skipped))]
    if len(lines) >= _NETLIFY_MANY_RULES:
        head.append(f"# {len(lines)} rules are many for Netlify: a deploy may fail.")
    return {
        "_redirects": "\n".join([*head, *lines, ""]).encode(),
        "_headers": "\n".join([_NETLIFY_HEAD.format(name=name), *_netlify_headers(site_rules, headers), ""]).encode(),
    }


def _netlify_line(rule: RedirectRule) -> tuple[str, str]:
    """Return the reason why a rule cannot be written, or its line, which is empty if Netlify needs none."""
    if "//" in rule.uri.partition("://")[2].partition("?")[0]:
        return "has doubled slashes, of which Netlify says nothing", ""
    parameters: list[str] = []
    for parameter in (rule.query or "").split("&") if rule.query else []:
        match = _NETLIFY_PARAMETER.fullmatch(parameter)
        if match is None or match[1] in (each.partition("=")[0] for each in parameters):
            return "has a query that Netlify's rules do not have", ""
        parameters.append(parameter)
    path = _netlify_path(rule.path)
    target = file_url_path(rule.target) if rule.status == 200 else _netlify_literal(rule.target)
    if not parameters and path.rstrip("/") == target.rstrip("/"):
        return "", ""  # Netlify ignores trailing slashes
    source = path if rule.host is None else f"http://{rule.host}{path}"
    return "", " ".join([source, *parameters, target, f"{rule.status}!"])


def _netlify_path(path: bytes) -> str:
    """Return a path for a rule. `*` and `:` are escaped too, because they are wildcards and placeholders."""
    return quote(path, safe="/-._~")


def _netlify_literal(target: str) -> str:
    scheme, separator, rest = target.partition("://") if not target.startswith("/") else ("", "", target)
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host}{slash}" + path.replace(":", "%3A").replace("*", "%2A")


def _netlify_headers(site_rules: RedirectRules, declared: dict[str, str]) -> list[str]:
    """Return header rules for files whose media type differs from that of their names, for each of their URLs."""
    types = dict(declared)
    for path in site_rules.files:
        media_type = _untypical_type(site_rules, path)
        if media_type is not None:
            types.update((_netlify_path(each), media_type) for each in served_paths(path))
    return [line for path, media_type in sorted(types.items()) for line in (path, f"  Content-Type: {media_type}")]


def _untypical_type(site_rules: RedirectRules, path: str) -> str | None:
    """Return the media type of a file if its name does not imply it."""
    media_type = site_rules.types.get(path)
    return None if media_type is None or media_type.lower() == _NETLIFY_TYPES.get(lower_extension(path)) else media_type


def hosting_files(
    resources: Sequence[ExportedResource], *, home: str | None = None, rewritten: bool = True
) -> dict[str, bytes]:
    """Return files, by name, that make the original URLs of an export work with nginx, Apache and Netlify.

    The site must be at the root of a host. A URL is answered with its file, or by a redirect to the file if its
    relative links would break otherwise; redirects of the site remain redirects. Files get their original media types
    and charsets. URLs that a server cannot match are left out and listed in a comment. The result does not depend on
    the order of the resources. See docs/export.md.

    Args:
        resources: The resources of the export.
        home: A URL of the site, whose host is replaced by that of the server; by default the most frequent host. URLs
            of other hosts work if these point to the server, too.
        rewritten: Whether links in files are relative to the files; otherwise they are unchanged.
    """
    site_rules = redirect_rules(resources, home=home, rewritten=rewritten)
    return {**nginx_files(site_rules), **apache_files(site_rules), **netlify_files(site_rules)}
