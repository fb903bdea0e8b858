"""`unlost uri`: shows how a URL is canonicalised in an index, a profile or a map."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unlost import uri
from unlost.cli import inputs
from unlost.cli.inputs import report_uri_error, uri_error_line
from unlost.cli.messages import escape_untrusted, say
from unlost.cli.options import load_suffix_list, psl_option, rules_option, suffixes_option
from unlost.cli.output import json_line, write_lines
from unlost.errors import ForeignSchemeError, UriError, UsageError

if TYPE_CHECKING:
    from rich.table import Table


_json = click.option("--json", is_flag=True, help="Print one JSON object per line, also for invalid URLs.")
_addresses = click.argument("addresses", metavar="URL...", nargs=-1, required=True)


@click.group(name="uri")
def command() -> None:
    """Convert URLs to canonical URLs, SURTs and URI-Keys.

    URLs are arguments, or lines of standard input for the argument `-`. An invalid URL is reported on standard error,
    and the other URLs are converted; the exit code is then 2 if the URL is an argument, and 5 if it is from standard
    input. URLs with other schemes, such as `dns:`, `mailto:` and `ftp:`, are reported and printed unchanged.

    \b
    Example:
      unlost uri surt http://www.example.com/a
    """


@command.command()
@_addresses
@rules_option
@_json
@click.pass_context
def surt(ctx: click.Context, addresses: tuple[str, ...], rules: str, json: bool) -> None:
    """Print the SURT of each URL: the sortable key that indexes use.

    If the argument is a SURT, as written by unlost or another tool, its normal form is printed.

    \b
    Example:
      unlost uri surt http://www.example.com/a
    """
    ctx.exit(_print_forms("surt", lambda texts: uri.surt_many(texts, rules), addresses, json))


@command.command()
@_addresses
@rules_option
@_json
@click.pass_context
def canonical(ctx: click.Context, addresses: tuple[str, ...], rules: str, json: bool) -> None:
    """Print the canonical URL of each URL.

    Different spellings of the URL of a page have the same canonical URL.

    \b
    Example:
      unlost uri canonical "HTTP://www.Example.com:80/a?b=2&a=1"
    """
    ctx.exit(_print_forms("canonical", lambda texts: uri.canonical_many(texts, rules), addresses, json))


@command.command()
@click.argument("addresses", metavar="SURT...", nargs=-1, required=True)
@rules_option
@_json
@click.pass_context
def unsurt(ctx: click.Context, addresses: tuple[str, ...], rules: str, json: bool) -> None:
    """Print a URL for each SURT.

    A SURT does not contain the scheme, so the URL has the scheme http. Only a SURT with port 80 gives https, because
    port 80 is omitted from the SURTs of http URLs.

    \b
    Example:
      unlost uri unsurt "com,example)/a"
    """
    ctx.exit(_print_forms("uri", lambda texts: uri.unsurt_many(texts, rules), addresses, json, given="surt"))


@command.command()
@_addresses
@click.option(
    "--policy",
    default="all",
    show_default=True,
    metavar="NAME[,NAME...]|all",
    help="URI-Key policies: HmPn with numbers of host labels and path segments (H3P1, HxP2), DDom, DSub, DPth, DQry, "
    "DIni, URIR, or `all` for the 23 policies of the paper.",
)
@rules_option
@psl_option
@suffixes_option
@_json
@click.option("--table", is_flag=True, help="Print a human-readable table for each URL.")
@click.pass_context
def keys(
    ctx: click.Context,
    addresses: tuple[str, ...],
    policy: str,
    rules: str,
    psl: Path | None,
    suffixes: str,
    json: bool,
    table: bool,
) -> None:
    """Print the URI-Keys of each URL or SURT.

    Each line has the URL as given, a policy and the key, separated by tabs.

    \b
    Example:
      unlost uri keys --policy H3P1,DDom http://www.example.com/a
    """
    names, code = _policy_names(policy)
    key_policies = uri.KeyPolicies(names, rules, load_suffix_list(psl, suffixes))
    key_table = _KeyTable() if table and not json else None
    for batch in inputs.read_batches(addresses):
        out: list[str] = []
        for line, page_keys in zip(batch, key_policies.keys_many(text for _, text in batch), strict=True):
            if isinstance(page_keys, UriError):
                code = max(code, report_uri_error(line, page_keys))
                if json:
                    out.append(uri_error_line("uri", line, page_keys))
            elif json:
                out.append(json_line(uri=line.decode(), keys=dict(zip(names, page_keys, strict=True))))
            elif key_table is not None:
                key_table.add(escape_untrusted(line.text), dict(zip(names, page_keys, strict=True)))
            else:
                address = escape_untrusted(line.text, None)
                out.extend(f"{address}\t{name}\t{key}\n" for name, key in zip(names, page_keys, strict=True))
        write_lines(out)
    if key_table is not None:
        key_table.print()
    ctx.exit(code)


def _print_forms(
    name: str,
    forms: Callable[[Iterator[bytes]], list[str | UriError]],
    addresses: tuple[str, ...],
    json: bool,
    given: str = "uri",
) -> int:
    code = 0
    for batch in inputs.read_batches(addresses):
        out: list[str] = []
        for line, form in zip(batch, forms(text for _, text in batch), strict=True):
            if isinstance(form, UriError):
                code = max(code, report_uri_error(line, form))
                if json:
                    out.append(uri_error_line(given, line, form))
                elif isinstance(form, ForeignSchemeError):
                    out.append(_verbatim(line.text) + "\n")
            elif json:
                out.append(json_line(**{given: line.decode(), name: form}))
            else:
                out.append(form + "\n")
        write_lines(out)
    return code


def _verbatim(text: bytes) -> str:
    """Return a URL to print: verbatim to a pipe, with control characters escaped to a terminal."""
    return escape_untrusted(text, None) if sys.stdout.isatty() else text.decode("utf-8", "surrogateescape")


def _policy_names(policies: str) -> tuple[list[str], int]:
    """Return the known policies, and the exit code for unknown ones."""
    names: list[str] = []
    code = 0
    for name in policies.split(","):
        if name.strip().lower() == "all":
            names.extend(uri.POLICIES)
            continue
        try:
            names.append(uri.policy_name(name.strip()))
        except UsageError as error:
            say(str(error))
            code = error.exit_code
    if not names:
        raise UsageError("no policy left: nothing to do")
    return list(dict.fromkeys(names)), code


class _KeyTable:
    """Human-readable table of the keys of a few URLs."""

    def __init__(self) -> None:
        self._keys: list[tuple[str, dict[str, str]]] = []

    def add(self, address: str, keys: dict[str, str]) -> None:
        self._keys.append((address, keys))

    def print(self) -> None:
        from rich.console import Console  # noqa: PLC0415  only for tables

        # A pipe has no width, and keys must not be wrapped.
        console = Console(width=None if sys.stdout.isatty() else 10_000)
        for address, keys in self._keys:
            console.print(self._table(address, keys))

    def _table(self, address: str, keys: dict[str, str]) -> "Table":
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table("policy", "key", title=Text(address, style="bold"), title_justify="left")
        for policy, key in keys.items():
            table.add_row(Text(policy), Text(key, overflow="fold"))
        return table
