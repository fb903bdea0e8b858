"""Penalties for single resources: by their type, or by their address."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import translate

from unlost.errors import UsageError
from unlost.measure.difference import Penalties

_MAX_URL_LENGTH = 2_000  # characters of an address, so that a hostile one costs little: pages have no longer ones


@dataclass(frozen=True, slots=True)
class PenaltyRules:
    """Which penalties count for which resource: of the rules that match it the last, else `others`."""

    default: Penalties = field(default_factory=Penalties)
    _rules: tuple[tuple[Callable[[str, str], bool], Penalties], ...] = ()

    def with_type_rule(self, text: str) -> "PenaltyRules":
        """Return the rules with one more, such as `image/*=0.2,1,0`. Raises UsageError.

        >>> rules = PenaltyRules().by_type("image/*=0.2,1,0").by_uri("/thumbs/=0,0,0")
        >>> rules.of("image/png", "http://a.example/b.png").changed
        0.2
        >>> rules.of("image/png", "http://a.example/thumbs/b.png").changed
        0.0
        """
        pattern, penalties = _split_rule(text, "TYPE")
        if not re.fullmatch(r"[\w.+*?-]+/[\w.+*?-]+|\*", pattern):
            raise UsageError(f"`{pattern[:80]}`: expected a type such as text/html, image/* or *")
        found = re.compile(translate(pattern.lower()))
        return self._with(lambda mime, _: found.fullmatch(mime) is not None, penalties)

    def with_uri_rule(self, text: str) -> "PenaltyRules":
        r"""Return the rules with one more, such as `\.pdf$=0.5,1,0`; it is looked for anywhere in an address.

        Raises UsageError.
        """
        pattern, penalties = _split_rule(text, "REGEX")
        try:
            found = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"`{pattern[:80]}` is no regular expression: {error}") from None
        return self._with(lambda _, uri: found.search(uri[:_MAX_URL_LENGTH]) is not None, penalties)

    def penalties_for(self, mime: str, uri: str) -> Penalties:
        """Return the penalties for a resource of this type at this address."""
        for matches, penalties in reversed(self._rules):
            if matches(mime, uri):
                return penalties
        return self.default

    def _with(self, matches: Callable[[str, str], bool], penalties: Penalties) -> "PenaltyRules":
        return PenaltyRules(self.default, (*self._rules, (matches, penalties)))


def _split_rule(text: str, what: str) -> tuple[str, Penalties]:
    # From the end: an expression may have any sign in it, penalties have no `=`.
    pattern, mark, penalties = text.rpartition("=")
    if not mark or not pattern:
        raise UsageError(f"`{text[:80]}`: expected {what}=C,M,A")
    return pattern, Penalties.parse(penalties)
