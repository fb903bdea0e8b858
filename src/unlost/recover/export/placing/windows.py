"""Names that Windows takes."""

import re

_WINDOWS_REPLACEMENTS = str.maketrans({"?": "@", "|": "%7C", ":": "+", "*": "%2A", '"': "%22", "<": "%3C", ">": "%3E"})
# By whatever ending; the digits of COM and LPT may also be raised ones.
_WINDOWS_DEVICE = re.compile(
    r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3]) *(?=\.|$)", re.IGNORECASE
)
_TRAILING_DOTS = re.compile(r"[. ]+$")


def windows_name(name: str) -> str:
    """Return the name of a file or a folder as Windows takes it.

    name: of one file or folder, without control characters, slashes and backslashes.

    >>> legal("a|b:c.php?x=*"), legal("nul.txt"), legal("etc."), legal("console.txt")
    ('a%7Cb+c.php@x=%2A', 'nul_.txt', 'etc%2E', 'console.txt')
    """
    name = name.translate(_WINDOWS_REPLACEMENTS)
    name = _WINDOWS_DEVICE.sub(lambda found: f"{found[0]}_", name, count=1) if _WINDOWS_DEVICE.match(name) else name
    return _TRAILING_DOTS.sub(lambda found: found[0].replace(".", "%2E").replace(" ", "%20"), name)
