"""`unlost map`: what an archive holds, as a MementoMap."""

import click

from unlost.cli.maplookup import lookup


@click.group(name="map")
def command() -> None:
    """Look pages up in MementoMaps."""


command.add_command(lookup)
