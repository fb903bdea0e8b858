"""Command-line interface: one module per command, which parses arguments and prints results.

The work itself is done by the other packages, none of which may import `unlost.cli`. The console script and the
worker processes enter through `unlost.cli.start`.

Modules in reading order:
    commands: Table of commands, whose modules are imported only when they are called.
    start, main, config: Entry point; maps errors to exit codes; settings in `config.toml`.
    messages, problems, progress: Messages and problem reports on stderr; the progress bar.
    types, options, inputs, output: Parameter types, shared options, URL input in batches, standard output and files.
    archive_options, archive_clients: Options that choose archives; HTTP clients with the rate limits of the user.
    sampling, job_options: Shared by `map sample` and `overlap`; by `serve`, `worker` and `jobs`.
    archives, check, compare, completion, demo, evaluate, export, filter, harvest, index, jobs, map, overlap, profile,
        recover, refresh, report, serve, stats, synth, timegate, timemap, uri, vault, watch, worker: One command each.
    map_build, map_compact, map_exclude, map_sample, vault_recover: Subcommands of `map` and `vault`.
    check_run, compare_run, export_run, harvest_run, overlap_run, recover_run, refresh_learn, report_factors,
        report_run, watch_run: What a command runs, imported only when it is called, to keep `--help` fast.
"""
