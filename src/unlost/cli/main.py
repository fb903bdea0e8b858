"""`unlost`: runs the command, and turns its errors into messages and exit codes."""

import errno
import os
import sys
from contextlib import nullcontext
from typing import Any

import click

from unlost.cli import config
from unlost.cli.commands import LazyGroup
from unlost.cli.messages import say
from unlost.errors import UnlostError

# Errors on the command line end with 2 and errors in what was read with 3, so that a script that sees 2 need not look
# at its files. A named file that does not exist is 3: names come from other programs more often than from users.
EXIT_CODES = {
    0: "success",
    1: "a check failed, or a search found nothing",
    2: "usage error: an invalid command, option, URL, date or name on the command line",
    3: "an input is unreadable, damaged or empty, or the output cannot be written: nothing was written",
    4: "incomplete: run the same command again to resume",
    5: "success, but some input was skipped: unreadable lines or records, or damage that an option allowed",
    130: "interrupted by Ctrl-C (SIGINT)",
    141: "the reader of the output closed the pipe (SIGPIPE)",
}

_EPILOG = """\
Run `unlost COMMAND --help` for the options and an example of a command.

Each option can also be set in the configuration file or by an environment variable. An option on the command line
overrides the variable, which overrides the file. For `unlost uri surt --rules papers`, the variable is
UNLOST_URI_SURT_RULES=papers, and the file has a table [uri.surt] with the line rules = "papers". The file is
$UNLOST_HOME/config.toml, else $XDG_CONFIG_HOME/unlost/config.toml, else ~/.config/unlost/config.toml.
"""


def _print_version(ctx: click.Context, _param: click.Parameter, is_requested: bool) -> None:
    if is_requested and not ctx.resilient_parsing:
        from unlost._core import VERSION  # noqa: PLC0415  --help does without

        click.echo(f"unlost {VERSION}")
        ctx.exit()


@click.group(
    name="unlost",
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "UNLOST", "max_content_width": 100},
    epilog=_EPILOG,
)
@click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the messages on standard error: text, or one JSON object per line.",
)
@click.option(
    "--version",
    is_flag=True,
    callback=_print_version,
    expose_value=False,
    is_eager=True,
    help="Show the version and exit.",
    allow_from_autoenv=False,
)
def app(log: str) -> None:
    """Recover lost websites from web archives, and find out what web archives hold."""
    del log  # read by messages.say


def _errno_hint(number: int | None) -> str:
    """Return a hint for common operating system errors; empty if there is none."""
    if number in (errno.ENOSPC, errno.EDQUOT):
        return ": make room there, then give the same command again"
    if number == errno.EROFS:
        return ": give another place"
    if number == errno.EACCES:
        return ": change its rights, or give another place"
    return ""


def _with_suggestion(error: click.ClickException) -> click.ClickException:
    """Return the error; for an unknown command, with a suggestion of the most similar name.

    click suggests only commands that are loaded, and ours are loaded lazily. It reports the name since 8.4.
    """
    name, context = getattr(error, "command_name", None), getattr(error, "ctx", None)
    if name is None or context is None or getattr(error, "possibilities", None):
        return error
    from difflib import get_close_matches  # noqa: PLC0415  --help does without

    matches = get_close_matches(name, context.command.list_commands(context), 1)
    return click.UsageError(f"{error.message} Did you mean '{matches[0]}'?", context) if matches else error


def _say_why_it_ended(context: click.Context | None, text: str) -> None:
    """Print the final error in the format of `--log`. JSON consumers need this message above all."""
    with nullcontext() if context is None else context.scope(cleanup=False):
        say(text)


def run(arguments: list[str]) -> int:  # noqa: PLR0911  one return for each kind of end
    """Run one command and return its exit code. Raises only for faults of unlost itself."""
    context = None
    try:
        # Invalid settings must not prevent reading the help.
        asks_for_help = not {"-h", "--help", "--version"}.isdisjoint(arguments)
        defaults: dict[str, Any] = {} if asks_for_help else config.load()
        if defaults:
            config.check(defaults, app)
        if "_UNLOST_COMPLETE" in os.environ:
            app.main(arguments, prog_name="unlost")  # click's own shell completion; ends the process
        # Otherwise not through `app.main`: it would end the process itself when a pipe breaks.
        with app.make_context("unlost", arguments, default_map=defaults) as context:
            app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        shown_error = _with_suggestion(error)
        is_help = isinstance(error, click.exceptions.NoArgsIsHelpError)
        if context is not None and context.params["log"] == "json" and not is_help:
            _say_why_it_ended(context, shown_error.format_message())
        else:
            shown_error.show()
        return 2
    except UnlostError as error:
        _say_why_it_ended(context, str(error))
        return error.exit_code
    except BrokenPipeError:
        # Python flushes stdout once more at exit: point it to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        # Such as a full disk or a read-only folder: the system's message, with the file's name if it has one.
        _say_why_it_ended(
            context, f"{error.filename or 'input or output'}: {error.strerror or error}{_errno_hint(error.errno)}"
        )
        return 3
    except (KeyboardInterrupt, click.Abort):
        click.echo(err=True)  # new line after the ^C
        _say_why_it_ended(context, "interrupted")
        return 130
    return 0
