"""Server configuration for an exported site: nginx, Apache and Netlify."""

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
"""Bytes of the longest part of a path: Apache looks each of them up in the file system, and refuses longer ones."""
_APACHE_MIN_GROUP = 4
"""From how many rules for the same path on they are passed over at once."""
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
# A recovered site is nothing but files; whatever is in them, they are no programs of this server.
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


def apache_files(old: RedirectRules) -> dict[str, bytes]:
    """Return the file for Apache by its name."""
    by_ending = types_by_extension(old.files, old.types)
    left = list(old.skipped)
    rules = []
    for rule in old.rules:
        reason = _apache_refusal(rule)
        if reason:
            left.append((rule.uri, reason))
        else:
            rules.append(rule)
    odd = untypical_files(old.types, by_ending)
    name = re.sub(r"[^a-z0-9.-]", "_", old.name)
    lines = [
        *_APACHE_HEAD.format(name=name, count=len(rules) + len(odd)).splitlines(),
        *skipped_comment(sorted(left)),
        *_APACHE_SETTINGS.splitlines(),
        *(f'AddType "{told}" .{end}' for end, told in by_ending.items()),
        *_APACHE_REWRITING.splitlines(),
    ]
    # Those for one host come first: the others hold for every host.
    for is_any, of_hosts in groupby(
        sorted(rules, key=lambda rule: rule.host is None), key=lambda rule: rule.host is None
    ):
        del is_any
        for path, same in groupby(of_hosts, key=lambda rule: rule.path):
            group = list(same)
            if len(group) >= _APACHE_MIN_GROUP:
                lines.append(f'RewriteRule "!^{exact_pattern(path[1:])}\\z" - [S={len(group)}]')
            for rule in group:
                lines += _apache_lines(rule)
    # A file that a rule leads to comes here in a second round, under its own path.
    lines += [f'RewriteRule "^{exact_pattern(path_bytes(path))}\\z" - "[T={told}]"' for path, told in odd.items()]
    return {".htaccess": "\n".join([*lines, ""]).encode()}


def _apache_refusal(rule: RedirectRule) -> str:
    if re.search(r"%2f", rule.uri.partition("?")[0], re.IGNORECASE):
        return "has an escaped slash, which Apache refuses"
    parts = rule.path.split(b"/")
    if max(map(len, parts)) > _APACHE_MAX_NAME:
        return "has too long a name for Apache"
    if any(part.lower().startswith(b".ht") for part in parts):
        return "has a name that Apache hides"
    return ""


def _apache_lines(rule: RedirectRule) -> list[str]:
    query = "" if rule.query is None else exact_pattern(rule.query.encode(), any_case_of_escapes=True)
    lines = [f'RewriteCond %{{QUERY_STRING}} "^{query}\\z"']
    if rule.host is not None:
        lines.append(f'RewriteCond %{{HTTP_HOST}} "^{exact_pattern(rule.host.encode())}(?::[0-9]+)?\\z" [NC]')
    if rule.status == 200:
        to, flags = quote(path_bytes(rule.target), safe="/-._~"), "QSD,L"
    else:
        to, flags = rule.target, f"R={rule.status},NE,QSD,L"
        if "?" in to:
            flags = flags.replace("QSD,", "")  # it has a query of its own
    substitution = re.sub(r"([%$\\])", r"\\\1", to)
    return [*lines, f'RewriteRule "^{exact_pattern(rule.path[1:])}\\z" "{substitution}" [{flags}]']


_NGINX_MAX_WORD = 4_000
"""nginx refuses settings with a word of 4,096 bytes or more."""
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


def nginx_files(old: RedirectRules) -> dict[str, bytes]:
    """Return the files for nginx by name: one for the level of `http`, one for that of `server`."""
    variable = "unlost_" + re.sub("[^a-z0-9]", "_", old.name)
    by_ending = types_by_extension(old.files, old.types)
    odd = untypical_files(old.types, by_ending)
    kinds = sorted(set(odd.values()))
    prefix = _nginx_free_prefix(old.files)
    places = {path: f"{prefix}{kinds.index(told)}/" for path, told in odd.items()}
    left = list(old.skipped)

    files = {each: path for path in old.files for each in served_paths(path)}
    typed = {each: _nginx_path(places[path], path) for each, path in files.items() if path in places}
    here: dict[bytes, bytes] = {}
    elsewhere: dict[bytes, bytes] = {}
    for rule in old.rules:
        key = (rule.host or "").encode() + rule.path + (b"" if rule.query is None else f"?{rule.query}".encode())
        is_inside = rule.status == 200
        value = (
            _nginx_path(places.get(rule.target, "/"), rule.target)
            if is_inside
            else f"{rule.status} {rule.target}".encode()
        )
        there = here if rule.host is None else elsewhere
        if len(_nginx_map_entry(key, value, by_number=_CONTROL_CHARACTERS.search(key) is not None)) > _NGINX_MAX_WORD:
            left.append((rule.uri, "too long"))
        elif there.setdefault(key, value) != value:
            left.append((rule.uri, "the server cannot tell it from another address"))

    maps = [
        *_nginx_map("$uri", f"${variable}_type", b'""', typed, files),
        *_nginx_map("$uri$is_args$args", f"${variable}_path", f"${variable}_type".encode(), here, [*here, *files]),
        *_nginx_map("$host$uri$is_args$args", f"${variable}", f"${variable}_path".encode(), elsewhere, elsewhere),
    ]
    dollar = b'geo $unlost_dollar { default "$"; }' if any(b"${unlost_dollar}" in line for line in maps) else b""
    longest = max((len(key) for each in (typed, here, elsewhere) for key in each), default=0)
    sizes = [
        f"map_hash_bucket_size {max(128, 1 << (longest + 32).bit_length())};",
        f"map_hash_max_size {max(2048, 2 * max(len(typed), len(here), len(elsewhere)))};",
    ]
    head = [*_NGINX_HTTP.format(name=_printable_name(old.name)).splitlines(), *skipped_comment(sorted(left)), *sizes]
    server = [
        *_NGINX_SERVER.format(name=_printable_name(old.name), index=INDEX_NAME).splitlines(),
        *_nginx_types(by_ending),
    ]
    for number, told in enumerate(kinds):
        server += [
            f"location ^~ {prefix}{number}/ {{",
            "    internal;",
            "    types { }",
            f'    default_type "{told}";',
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
    """Return the beginning of addresses that no file has: below it, files have other types than their endings say."""
    firsts = {path.partition("/")[0] for path in files}
    name = ".unlost-type-"
    while any(first.startswith(name) for first in firsts):
        name = f"{name}-"
    return f"/{name}"


def _nginx_path(place: str, path: str) -> bytes:
    return place.encode() + path_bytes(path)


def _nginx_map(
    source: str, name: str, default: bytes, entries: dict[bytes, bytes], known: Iterable[bytes]
) -> list[bytes]:
    # nginx looks words up without regard to case; those that differ by nothing else are told apart by expressions.
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


def _nginx_types(by_ending: dict[str, str]) -> list[str]:
    if not by_ending:
        return []
    return ["types {", *(f'    "{told}" {end};' for end, told in by_ending.items()), "}"]


def _printable_name(name: str) -> str:
    return re.sub(r"[^a-z0-9.-]", "_", name)


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


def hosting_files(
    placed: Sequence[ExportedResource], *, home: str | None = None, rewritten: bool = True
) -> dict[str, bytes]:
    """Return files to add to an export, by name, so that its old addresses work with nginx, Apache and Netlify.

    home: an address of the site, whose host gives way to whatever host it is put on; without one, the most frequent
        host. Addresses of other hosts work where these lead to the server, too.
    rewritten: whether links in files are relative to the files; False if they are as they were.

    The site has to be at the root of a host. An address of a resource is answered with its file, by a redirect if its
    links would lead elsewhere otherwise; redirects of the site are redirects again. Files get the types and charsets
    that they had. What a server cannot be told is left out, and named in a comment. The same resources, in any order,
    give the same files. See docs/hosting.md.
    """
    old = redirect_rules(placed, home=home, rewritten=rewritten)
    return {**nginx_files(old), **apache_files(old), **netlify_files(old)}
