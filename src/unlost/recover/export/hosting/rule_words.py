"""Words and comments of servers' settings, out of addresses that may be anything."""

import re
from collections.abc import Sequence
from urllib.parse import quote

_MAX_COMMENTED_URLS = 100
_MAX_COMMENTED_LENGTH = 200


def exact_pattern(text: bytes, *, any_case_of_escapes: bool = False) -> str:
    r"""Return the regular expression of a text: letters, digits and slashes as they are, all else by number.

    So it has nothing that is special in any settings: no quotes, blanks, dollars, braces or percent signs.
    any_case_of_escapes: whether `%c3` is also `%C3`.

    >>> exactly(b"/a b"), exactly(b"%c3", any_case_of_escapes=True)
    ('/a\\x20b', '\\x25(?i:c3)')
    """
    if any_case_of_escapes:
        parts = re.split(rb"%([0-9a-fA-F]{2})", text)
        odd = (rf"\x25(?i:{part.decode().lower()})" for part in parts[1::2])
        return "".join(f"{exact_pattern(even)}{escape}" for even, escape in zip(parts[::2], [*odd, ""], strict=True))
    return re.sub(rb"[^A-Za-z0-9/_-]", lambda found: b"\\x%02X" % found[0][0], text).decode()


def skipped_comment(left: Sequence[tuple[str, str]]) -> list[str]:
    """Return lines of a comment that names what was left out, so that they are nothing but a comment."""
    if not left:
        return []
    lines = [f"# Left out: {len(left)}"]
    for uri, reason in left[:_MAX_COMMENTED_URLS]:
        shown = quote(uri, safe="/:?@!&()*+,;=-._~%", errors="surrogatepass")
        lines.append(
            f"#   {shown[:_MAX_COMMENTED_LENGTH]}{'...' if len(shown) > _MAX_COMMENTED_LENGTH else ''} ({reason})"
        )
    if len(left) > _MAX_COMMENTED_URLS:
        lines.append(f"#   and {len(left) - _MAX_COMMENTED_URLS} more")
    return lines
