"""Settings for Apache: one `.htaccess`, which may as well be included in the settings of a virtual host."""

import re
from itertools import groupby
from urllib.parse import quote

from unlost.recover.export.hosting.content_types import exceptions, types_by_ending
from unlost.recover.export.hosting.old_addresses import OldAddresses, Rule
from unlost.recover.export.hosting.rule_words import comment_on, exactly
from unlost.recover.export.hosting.site_address import INDEX, path_bytes

_MAX_NAME = 255
"""Bytes of the longest part of a path: Apache looks each of them up in the file system, and refuses longer ones."""

_GROUP = 4
"""From how many rules for the same path on they are passed over at once."""

_HEAD = """\
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
_SETTINGS = f"""\
DirectoryIndex {INDEX}
AddDefaultCharset Off
<FilesMatch ".">
    SetHandler default-handler
</FilesMatch>
"""
_REWRITING = """\
RewriteEngine On
RewriteBase /
RewriteRule ^(?:_nginx/.*|_headers|_redirects)$ - [R=404,L]
"""


def apache_rules(old: OldAddresses) -> dict[str, bytes]:
    """Return the file for Apache by its name."""
    by_ending = types_by_ending(old.files, old.types)
    left = list(old.left)
    rules = []
    for rule in old.rules:
        reason = _cannot(rule)
        if reason:
            left.append((rule.uri, reason))
        else:
            rules.append(rule)
    odd = exceptions(old.types, by_ending)
    name = re.sub(r"[^a-z0-9.-]", "_", old.name)
    lines = [
        *_HEAD.format(name=name, count=len(rules) + len(odd)).splitlines(),
        *comment_on(sorted(left)),
        *_SETTINGS.splitlines(),
        *(f'AddType "{told}" .{end}' for end, told in by_ending.items()),
        *_REWRITING.splitlines(),
    ]
    # Those for one host come first: the others hold for every host.
    for is_any, of_hosts in groupby(
        sorted(rules, key=lambda rule: rule.host is None), key=lambda rule: rule.host is None
    ):
        del is_any
        for path, same in groupby(of_hosts, key=lambda rule: rule.path):
            group = list(same)
            if len(group) >= _GROUP:
                lines.append(f'RewriteRule "!^{exactly(path[1:])}\\z" - [S={len(group)}]')
            for rule in group:
                lines += _written(rule)
    # A file that a rule leads to comes here in a second round, under its own path.
    lines += [f'RewriteRule "^{exactly(path_bytes(path))}\\z" - "[T={told}]"' for path, told in odd.items()]
    return {".htaccess": "\n".join([*lines, ""]).encode()}


def _cannot(rule: Rule) -> str:
    if re.search(r"%2f", rule.uri.partition("?")[0], re.IGNORECASE):
        return "has an escaped slash, which Apache refuses"
    parts = rule.path.split(b"/")
    if max(map(len, parts)) > _MAX_NAME:
        return "has too long a name for Apache"
    if any(part.lower().startswith(b".ht") for part in parts):
        return "has a name that Apache hides"
    return ""


def _written(rule: Rule) -> list[str]:
    query = "" if rule.query is None else exactly(rule.query.encode(), any_case_of_escapes=True)
    lines = [f'RewriteCond %{{QUERY_STRING}} "^{query}\\z"']
    if rule.host is not None:
        lines.append(f'RewriteCond %{{HTTP_HOST}} "^{exactly(rule.host.encode())}(?::[0-9]+)?\\z" [NC]')
    if rule.status == 200:
        to, flags = quote(path_bytes(rule.to), safe="/-._~"), "QSD,L"
    else:
        to, flags = rule.to, f"R={rule.status},NE,QSD,L"
        if "?" in to:
            flags = flags.replace("QSD,", "")  # it has a query of its own
    substitution = re.sub(r"([%$\\])", r"\\\1", to)
    return [*lines, f'RewriteRule "^{exactly(rule.path[1:])}\\z" "{substitution}" [{flags}]']
