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
        "unlost.cli.archives", "List web archives, show what is known about each, and test whether they answer."
    ),
    "check": CommandEntry(
        "unlost.cli.check", "Estimate how much of a site could be recovered from web archives if it were lost now."
    ),
    "compare": CommandEntry(
        "unlost.cli.compare", "Compare a site with its recovery: count identical, changed, missing and added resources."
    ),
    "completion": CommandEntry("unlost.cli.completion", "Print what makes a shell complete commands and options."),
    "demo": CommandEntry(
        "unlost.cli.demo",
        "Demonstrate a recovery: lose a sample site, recover it from three local archives, and compare.",
    ),
    "evaluate": CommandEntry(
        "unlost.cli.evaluate", "Say how well profiles, maps, budgets and filters of an index tell which pages it holds."
    ),
    "export": CommandEntry(
        "unlost.cli.export",
        "Export a recovery as a website for offline use or hosting, or as a WACZ or WARC file for replay.",
    ),
    "filter": CommandEntry(
        "unlost.cli.filter",
        "Make, extend, compact, check and ask filters, which tell pages that an archive does not hold.",
    ),
    "harvest": CommandEntry("unlost.cli.harvest", "Revisit pages, and download those that changed to WARC files."),
    "index": CommandEntry(
        "unlost.cli.index", "Make, read, check and convert the files in which archives list what they hold."
    ),
    "jobs": CommandEntry(
        "unlost.cli.jobs", "Submit recovery jobs to a service (`unlost serve --jobs`), and manage them."
    ),
    "map": CommandEntry(
        "unlost.cli.map",
        "Make, compact, merge, compare, check and ask MementoMaps, which say what an archive holds.",
    ),
    "overlap": CommandEntry(
        "unlost.cli.overlap",
        "Say which archives hold the pages of a list, alone and together, and how good copies are.",
    ),
    "profile": CommandEntry(
        "unlost.cli.profile", "Count what an archive holds under URI-Keys; merge, look up and check such profiles."
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
        "unlost.cli.stats", "Describe what an archive holds, from its index, or what it is asked for, from its logs."
    ),
    "synth": CommandEntry(
        "unlost.cli.synth",
        "Make up indexes of any size, and questions for them, the same ones everywhere, for benches and tests.",
    ),
    "timegate": CommandEntry(
        "unlost.cli.timemap",
        "Print the address and the date of the copy of a page that is closest to a date.",
        "timegate_command",
    ),
    "timemap": CommandEntry("unlost.cli.timemap", "List all copies of a page that archives have, by date."),
    "uri": CommandEntry("unlost.cli.uri", "Canonical forms, SURTs and URI-Keys of addresses."),
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
        """Return the names in the order of the table."""
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
        """Write the list of commands from the table alone."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])
