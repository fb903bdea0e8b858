"""Human-readable messages and logs, on stderr. Results go to stdout and never pass through here."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

STANDARD_INPUT_FILE = "unlost.standard_input_file"
"""Key in the meta of a click context: path of the temporary file that holds standard input."""

_MAX_INPUT_CHARS = 100  # characters of user input in a message: enough to recognise it, short enough for one line
_MAX_MESSAGE = 1000  # characters: no message is that long, unless a name in it is


def escape_untrusted(text: bytes, limit: int | None = _MAX_INPUT_CHARS) -> str:
    r"""Return untrusted bytes as one line that no terminal acts on, cut to `limit` characters.

    >>> escape_untrusted(b"http://a\x1b[31m/")
    'http://a\\x1b[31m/'
    """
    head = text if limit is None else text[: limit * 4]
    line = _escape_unprintable(head.decode("utf-8", "backslashreplace"))
    if limit is not None and (len(line) > limit or len(head) < len(text)):
        return line[:limit] + "…"
    return line


def _escape_unprintable(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def say_next(text: str) -> None:
    """Print the suggested next step after a command. Commands omit it with `--json`."""
    say(f"next: {text}", level="info")


def command_line(*words: "str | Path") -> str:
    """Return a command of ours as typed into a shell, in backquotes.

    >>> command_line("report", "my site.recovery")
    "`unlost report 'my site.recovery'`"
    """
    import shlex  # noqa: PLC0415  not needed by --help

    return f"`{shlex.join(['unlost', *map(str, words)])}`"


def _strip_userinfo(text: str) -> str:
    """Remove user names and passwords from URLs. Few messages have any; the others avoid the import."""
    if "@" not in text and "%40" not in text:
        return text
    from unlost.redaction import strip_userinfo  # noqa: PLC0415  start-up

    return strip_userinfo(text)


def say(text: str, *, level: str = "error", **fields: str | int) -> None:
    """Write one message; with `--log json`, as an object that includes the fields.

    As text, it is `unlost: ` and the message without the fields, so the message must be complete in itself. It is
    always a single line without terminal control characters, and URLs in it have no user name or password.
    """
    context = click.get_current_context(silent=True)
    if context is not None and STANDARD_INPUT_FILE in context.meta:
        text = text.replace(context.meta[STANDARD_INPUT_FILE], "standard input")
    if len(text) > _MAX_MESSAGE:
        # The end of a message says what is wrong and what to do, so the middle is cut.
        text = f"{text[: _MAX_MESSAGE // 2]}…{text[-_MAX_MESSAGE // 2 :]}"
    text = _escape_unprintable(_strip_userinfo(text))
    if context is not None and context.find_root().params.get("log") == "json":
        import json  # noqa: PLC0415  not needed by --help

        stripped = {name: _strip_userinfo(value) if isinstance(value, str) else value for name, value in fields.items()}
        click.echo(json.dumps({"level": level, "message": text, **stripped}, ensure_ascii=False), err=True)
    else:
        click.echo(f"unlost: {text}", err=True)
