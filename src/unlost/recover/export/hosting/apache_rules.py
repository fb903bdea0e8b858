"""Settings for Apache: one `.htaccess`, which may as well be included in the settings of a virtual host."""

import re
from itertools import groupby
from urllib.parse import quote

from unlost.recover.export.hosting.content_types import untypical_files, types_by_extension
from unlost.recover.export.hosting.old_addresses import RedirectRules, RedirectRule
from unlost.recover.export.hosting.rule_words import skipped_comment, exact_pattern
from unlost.recover.export.hosting.site_address import INDEX_NAME, path_bytes

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
