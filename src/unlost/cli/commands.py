"""Table of commands, and click groups that import a command's module only when it is called.

This keeps `unlost --help` fast: it imports this module, `main`, `config` and `messages`, and nothing else.
"""

from importlib import import_module
from typing import NamedTuple

import click


class CommandEntry(NamedTuple):
    """Where a command is defined, and its line in `unlost --help` (a test compares it with the command's own)."""

    module: str
    summary: str
    attribute: str = "command"


COMMANDS = {
    "archives": CommandEntry(
        "unlost.cli.archives", "List web archives, show what is known about them, and test whether they respond."
    ),
    "check": CommandEntry(
        "unlost.cli.check", "Estimate how much of a site could be recovered from web archives if it were lost now."
    ),
    "compare": CommandEntry(
        "unlost.cli.compare", "Compare a site with its recovery: count identical, changed, missing and added resources."
    ),
    "completion": CommandEntry("unlost.cli.completion", "Print a completion script for bash, zsh or fish."),
    "demo": CommandEntry(
        "unlost.cli.demo",
        "Demonstrate a recovery: lose a sample site, recover it from three local archives, and compare.",
    ),
    "evaluate": CommandEntry(
        "unlost.cli.evaluate", "Measure how well profiles, maps and filters predict which pages an archive holds."
    ),
    "export": CommandEntry(
        "unlost.cli.export",
        "Export a recovery as a website for offline use or hosting, or as a WACZ or WARC file for replay.",
    ),
    "filter": CommandEntry(
        "unlost.cli.filter", "Build, update and query filters, which say which pages an archive does not hold."
    ),
    "harvest": CommandEntry("unlost.cli.harvest", "Revisit pages, and download those that changed to WARC files."),
    "index": CommandEntry("unlost.cli.index", "Build, read, check and convert CDX, CDXJ and ZipNum indexes."),
    "jobs": CommandEntry(
        "unlost.cli.jobs", "Submit recovery jobs to a service (`unlost serve --jobs`), and manage them."
    ),
    "map": CommandEntry(
        "unlost.cli.map", "Build, compact, merge and query MementoMaps, which summarise an archive's holdings."
    ),
    "overlap": CommandEntry(
        "unlost.cli.overlap", "Measure which archives hold the pages of a list, and how much they overlap."
    ),
    "profile": CommandEntry(
        "unlost.cli.profile", "Build, merge and query archive profiles, which count captures by URI-Key."
    ),
    "recover": CommandEntry("unlost.cli.recover", "Recover a lost website from web archives."),
    "refresh": CommandEntry(
        "unlost.cli.refresh", "Learn from past visits when ETag and Last-Modified headers can be trusted."
    ),
    "report": CommandEntry(
        "unlost.cli.report",
        "Report which resources a recovery contains, from which archives and dates, and what is missing.",
    ),
    "serve": CommandEntry(
        "unlost.cli.serve",
        "Run a Memento aggregator: a web service with TimeMaps, TimeGates and a search page for all archives.",
    ),
    "stats": CommandEntry(
        "unlost.cli.stats", "Compute statistics of the captures in an index, or of the requests in access logs."
    ),
    "synth": CommandEntry("unlost.cli.synth", "Generate synthetic indexes and queries for benchmarks and tests."),
    "timegate": CommandEntry(
        "unlost.cli.timemap", "Find the memento of a page closest to a date, in all archives.", "timegate_command"
    ),
    "timemap": CommandEntry("unlost.cli.timemap", "List the mementos of a page in all archives, by date."),
    "uri": CommandEntry("unlost.cli.uri", "Convert URLs to canonical URLs, SURTs and URI-Keys."),
    "vault": CommandEntry(
        "unlost.cli.vault", "Store a site's server files in its own pages, and recover them from archived pages."
    ),
    "watch": CommandEntry(
        "unlost.cli.watch",
        "Monitor sites: measure how long resources live in web archives, and detect the loss of a site.",
    ),
    "worker": CommandEntry(
        "unlost.cli.worker", "Run recovery jobs of a service (`unlost serve --jobs`) until interrupted."
    ),
}

COMMAND_GROUPS: dict[str, tuple[str, ...]] = {
    "Recover a website": ("recover", "report", "export", "demo"),
    "Look up captures": ("timemap", "timegate", "archives", "uri"),
    "Describe an archive": ("index", "map", "filter", "profile", "stats"),
    "Run a service": ("serve", "worker", "jobs"),
    "Protect your site": ("check", "watch", "vault"),
    "Research": ("compare", "overlap", "evaluate", "refresh", "harvest", "synth"),
    "Other commands": ("completion",),
}
"""Sections of `unlost --help` by heading: each command of `COMMANDS` is in one of them (a test checks it)."""


def lazy_group(**modules: str) -> type[click.Group]:
    """Return a group class that imports each of these commands from its module in `unlost.cli` when it is used."""

    class Group(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            """Return the names in order of definition."""
            return sorted([*super().list_commands(ctx), *modules])

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            """Return the command, importing its module if it is a lazy one."""
            if cmd_name not in modules:
                return super().get_command(ctx, cmd_name)
            found: click.Command = getattr(import_module(f"unlost.cli.{modules[cmd_name]}"), cmd_name)
            return found

    return Group


class LazyGroup(click.Group):
    """A group that lists its commands by name and summary without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order, as in the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return the command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name].module), COMMANDS[cmd_name].attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by group, from the tables alone. All groups have columns of equal width."""
        del ctx
        width = max(map(len, COMMANDS))
        for heading, names in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), COMMANDS[name].summary) for name in names])
