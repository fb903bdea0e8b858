"""Files that make old addresses work where an exported site is hosted."""

from collections.abc import Sequence

from unlost.recover.export.hosting.apache_rules import apache_files
from unlost.recover.export.hosting.netlify_rules import netlify_files
from unlost.recover.export.hosting.nginx_rules import nginx_files
from unlost.recover.export.hosting.old_addresses import redirect_rules
from unlost.recover.export.placed import ExportedResource


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
