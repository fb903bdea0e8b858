"""Command-line interface: one module per command, which parses arguments and prints results.

The work itself is done by the other packages, none of which may import `unlost.cli`. The console script and the
worker processes enter through `unlost.cli.start`.

Modules in reading order:
    commands: Table of commands, whose modules are imported only when they are called.
    start, main, config: Entry point; maps errors to exit codes; settings in `config.toml`.
    messages, problems, progress: Messages and problem reports on stderr; the progress bar.
    output: Results on stdout and in files.
    types, options, inputs: Parameter types, options that commands share, URL input in batches.
    archive_options: Options that choose archives; HTTP clients with the rate limits of the user.
    sampling, job_options: Shared by `map sample` and `overlap`; by `serve`, `worker` and `jobs`.
    archives, check, compare, completion, demo, evaluate, export, filter, harvest, index, jobs, map, overlap, profile,
        recover, refresh, report, serve, stats, synth, timemap (and TimeGate), uri, vault, watch, worker: One command
        each.
    map_compact, map_sample, vault_recover: Long subcommands of `map` and `vault`.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.cli.archive_options import open_limit_store as open_limit_store
    from unlost.cli.commands import COMMANDS as COMMANDS
    from unlost.cli.job_options import open_database as open_database
    from unlost.cli.main import EXIT_CODES as EXIT_CODES
    from unlost.cli.main import app as app
    from unlost.cli.main import run as run
    from unlost.cli.map import build as build
    from unlost.cli.problems import PROBLEM_DESCRIPTIONS as PROBLEM_DESCRIPTIONS
    from unlost.cli.problems import format_problem as format_problem
    from unlost.cli.recover import command as command
    from unlost.cli.types import FILE_OR_FOLDER as FILE_OR_FOLDER
    from unlost.cli.types import FILE_OR_STDIN as FILE_OR_STDIN
    from unlost.cli.types import LOCAL_OR_REMOTE as LOCAL_OR_REMOTE
    from unlost.cli.types import READABLE_FILE as READABLE_FILE
    from unlost.cli.types import READABLE_FOLDER as READABLE_FOLDER
    from unlost.cli.types import RECOVERY_FOLDER as RECOVERY_FOLDER
    from unlost.cli.types import AnyPath as AnyPath
    from unlost.cli.types import ReadablePath as ReadablePath
    from unlost.cli.watch import WatchRun as WatchRun
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "archive_options": "open_limit_store",
            "commands": "COMMANDS",
            "job_options": "open_database",
            "main": "EXIT_CODES app run",
            "map": "build",
            "problems": "PROBLEM_DESCRIPTIONS format_problem",
            "recover": "command",
            "types": (
                "AnyPath FILE_OR_FOLDER FILE_OR_STDIN LOCAL_OR_REMOTE READABLE_FILE READABLE_FOLDER "
                "RECOVERY_FOLDER ReadablePath"
            ),
            "watch": "WatchRun",
        },
    )
