"""Command-line interface: one module per command, which parses arguments and prints results.

The work itself is done by the other packages, none of which may import `unlost.cli`. The console script and the
worker processes enter through `unlost.cli.start`.

Modules in reading order:

- `commands`: the table of commands, whose modules are imported only when they are called
- `start`, `main`, `config`: entry point, errors as exit codes, settings in `config.toml`
- `messages`, `problems`, `progress`: messages and problem reports on stderr, the progress bar
- `output`: results on stdout and in files
- `types`, `options`, `inputs`: parameter types, options that commands share, URL input in batches
- `archive_options`: options that choose archives; HTTP clients with the rate limits of the user
- `sampling`, `job_options`: shared by `map sample` and `overlap`; by `serve`, `worker` and `jobs`
- `archives`, `check`, `compare`, `completion`, `demo`, `evaluate`, `export`, `filter`, `harvest`, `index`, `jobs`,
  `map`, `overlap`, `profile`, `recover`, `refresh`, `report`, `serve`, `stats`, `synth`, `timemap` (and TimeGate),
  `uri`, `vault`, `watch`, `worker`: one command each
- `map_compact`, `map_sample`, `vault_recover`: long subcommands of `map` and `vault`
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
