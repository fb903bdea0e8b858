"""What a lister query is about: one page, what begins with an address, a host, or a domain with all its hosts."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from unlost import uri as addresses
from unlost.archives.urims import asked
from unlost.errors import UriError


@dataclass(frozen=True, slots=True)
class Scope:
    """What is asked for.

    match: `exact`, `prefix`, `host` or `domain`, as index servers call it.
    uri: what such a server is asked: an address, or a host.
    begin: what the keys of everything asked for begin with, or are.
    """

    match: str
    uri: str
    begin: str

    @classmethod
    def page(cls, uri: str) -> Self:
        """Return the scope of one page. Raises UriError.

        >>> Scope.page("http://www.example.com/A").begin
        'com,example)/a'
        """
        return cls("exact", asked(uri), addresses.key(uri))

    @classmethod
    def below(cls, prefix: str) -> Self:
        """Return the scope of a prefix as `Repository.under` has it. Raises UriError.

        >>> Scope.below("*.example.com")
        Scope(match='domain', uri='example.com', begin='com,example')
        >>> Scope.below("http://example.com:81").match, Scope.below("example.com/a/").match
        ('host', 'prefix')
        """
        if prefix.startswith("*."):
            host = prefix.removeprefix("*.").removesuffix("/")
            if not host or set(host) & set("/?#"):
                raise UriError("expected a host behind `*.`, and nothing behind that", "bad-host")
            return cls("domain", host, addresses.key(f"http://{host}/").partition(")")[0])
        address = asked(prefix)
        key = addresses.key(prefix)
        host, _, tail = address.partition("://")[2].partition("/")
        if not tail and "?" not in host:
            return cls("host", host.rpartition("@")[2], key.partition(")")[0] + ")")
        folder = "/" if address.endswith("/") and "?" not in address else ""
        return cls("prefix", address, key.removesuffix("/") + folder)

    def for_lister(self, matches: Collection[str]) -> "Scope | None":
        """Return how a lister is asked that answers only some kinds of questions; None if it cannot be asked this."""
        if self.match in matches:
            return self
        if self.match == "host" and "prefix" in matches:
            return Scope("prefix", f"http://{self.uri}/", self.begin)
        return None

    def holds(self, key: str | None) -> bool:
        """Return whether something with this key was asked for. Archives give more: other hosts, similar pages.

        >>> below = Scope.below("http://a.com/b/")
        >>> [below.holds(key) for key in ("com,a)/b", "com,a)/b/c", "com,a)/bc", "com,ab)/b/c")]
        [True, True, False, False]
        """
        if key is None:
            return False
        if self.match == "exact":
            return key == self.begin
        if self.match == "domain":
            return key.startswith(self.begin) and key[len(self.begin) : len(self.begin) + 1] in (")", ",", ":")
        # A key has no slash at its end, and what was asked for without one may go on.
        return key.startswith(self.begin) or f"{key.partition('?')[0]}/" == self.begin
