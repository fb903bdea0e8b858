"""The log of services, on stderr: a line each, as text or, with `--log json`, as objects with the fields beside."""

import json
import logging
from types import TracebackType

import click

from unlost.cli.messages import say
from unlost.shown.redaction import strip_userinfo

_LOG_FIELDS = ("job", "generation", "worker", "letter")


class _StderrHandler(logging.Handler):
    """Says records as messages are said. is_json is settled once: threads have no context of click."""

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self._is_json = is_json

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            # The whole way to a fault is for whoever mends it: in the object, or below the line.
            text = f"{text}: {record.exc_info[1]!r}"
        if not self._is_json:
            say(text)
            if record.exc_info:
                click.echo(_format_traceback(record.exc_info), err=True)
            return
        fields = {name: getattr(record, name) for name in _LOG_FIELDS if hasattr(record, name)}
        if record.exc_info:
            fields["trace"] = _format_traceback(record.exc_info)
        line = {
            "level": record.levelname.lower(),
            "time": round(record.created, 3),
            "message": strip_userinfo(text),
            **fields,
        }
        click.echo(json.dumps(line, ensure_ascii=False), err=True)


def _format_traceback(
    raised: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
) -> str:
    return strip_userinfo(logging.Formatter().formatException(raised))


def log_to_stderr() -> None:
    """Have everything said that unlost logs, from notes on."""
    context = click.get_current_context()
    log = logging.getLogger("unlost")
    log.setLevel(logging.INFO)
    log.addHandler(_StderrHandler(is_json=context.find_root().params.get("log") == "json"))
    log.propagate = False
