"""Settings for nginx: a map of old addresses, and what a server does with it."""

import re
from collections import Counter
from collections.abc import Iterable

from unlost.recover.export.hosting.content_types import untypical_files, types_by_extension
from unlost.recover.export.hosting.old_addresses import RedirectRules
from unlost.recover.export.hosting.rule_words import skipped_comment, exact_pattern
from unlost.recover.export.hosting.site_address import INDEX_NAME, served_paths, path_bytes

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
