"""`unlost vault status`: what is live, what archives hold, and whether the next stage is safe."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unlost.cli.messages import say
from unlost.cli.readable import FILE_OR_FOLDER
from unlost.cli.registry_options import select_archives, archives_option, only_option
from unlost.cli.table import print_table
from unlost.cli.vault_options import json_option, vault_option, visit_options, open_visits

if TYPE_CHECKING:
    from unlost.vault.gathering import BlockCollector
    from unlost.vault.generation import Generation
    from unlost.vault.state import Vault

_LIMIT_WAIT_SECONDS = 900.0


@click.command(name="status")
@vault_option
@click.option("--site", metavar="URL", help="The address of the living site: its pages are fetched.")
@click.option(
    "--held-in",
    type=FILE_OR_FOLDER,
    multiple=True,
    metavar="SOURCE",
    help="What archives hold: a recovery, WARCs, pages.",
)
@click.option("--ask-archives", is_flag=True, help="Ask the archives for their copies of all pages of the vault.")
@click.option(
    "--copies", type=click.IntRange(1, 100), default=3, show_default=True, help="Of each page, the last ones."
)
@visit_options
@archives_option
@only_option
@json_option
@click.pass_context
def status(ctx: click.Context, /, vault: Path, site: str | None, held_in: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401
    """Say what pages carry now, which version archives can bring back, and whether an update may go on.

    The exit code is 1 if no version is whole where it was looked for.
    """
    from unlost.vault.gathering import BlockCollector, collect_blocks  # noqa: PLC0415  start-up
    from unlost.vault.state import open_vault  # noqa: PLC0415

    state = open_vault(vault)
    places: dict[str, BlockCollector] = {}
    if site is not None:
        places["live"] = _gather_live(state, site, given)
    if held_in or given["ask_archives"]:
        places["archives"] = BlockCollector()
        for source in held_in:
            collect_blocks(source, places["archives"])
    if given["ask_archives"]:
        _gather_from_archives(state, site, given, places["archives"])
    value = _status_object(state, places)
    if given["json"]:
        click.echo(dumps(value))
    else:
        _print_status(value)
    ctx.exit(0 if all(any(g["whole"] for g in place["generations"]) for place in value["places"].values()) else 1)


def _gather_live(state: "Vault", site: str, given: dict[str, Any]) -> "BlockCollector":
    from unlost.vault.gathering import BlockCollector  # noqa: PLC0415  start-up

    found = BlockCollector()
    with open_visits(given) as (run, visiting):
        run(visiting.visit_pages(site, state.live))
        for each, body in visiting.iter_bodies():
            found.add_page(body, each.uri, each.seen or "", archive="live")
    return found


def _gather_from_archives(state: "Vault", site: str | None, given: dict[str, Any], into: "BlockCollector") -> None:
    import asyncio  # noqa: PLC0415  start-up

    import uvloop  # noqa: PLC0415

    from unlost.archives.opening import create_client  # noqa: PLC0415
    from unlost.cli.asking import open_http_client  # noqa: PLC0415
    from unlost.errors import UsageError  # noqa: PLC0415
    from unlost.vault.watching import collect_from_archive  # noqa: PLC0415

    if site is None:
        raise UsageError("--ask-archives needs --site, the address that archives know the pages by")
    chosen = select_archives(given["archives"], given["only"]).values()

    async def ask() -> None:
        async with open_http_client(given["contact"], _LIMIT_WAIT_SECONDS) as courier:
            asked = (
                collect_from_archive(each.id, create_client(each, courier), site, state.live, given["copies"], into)
                for each in chosen
            )
            for each, said in zip(chosen, await asyncio.gather(*asked), strict=True):
                if said is not None:
                    say(f"{each.id}: {said}", level="warning", archive=each.id)

    uvloop.run(ask())


def _status_object(state: "Vault", places: "dict[str, BlockCollector]") -> dict[str, Any]:
    from unlost.vault.watching import block_indices  # noqa: PLC0415  start-up

    value: dict[str, Any] = {
        "vault": str(state.folder), "pages": len(state.live), "updating": len(state.generations) > 1, "places": {},
    }  # fmt: skip
    for name, gathering in places.items():
        generations = [_generation_object(each, block_indices(gathering), gathering) for each in state.generations]
        value["places"][name] = {
            "pages": gathering.pages, "carrying": gathering.pages_with_blocks, "problems": dict(gathering.problems),
            "generations": generations,
        }  # fmt: skip
    held = value["places"].get("archives")
    value["next_stage_is_safe"] = bool(value["updating"] and held and held["generations"][-1]["whole"])
    return value


def _generation_object(generation: "Generation", indices: Any, gathering: "BlockCollector") -> dict[str, Any]:  # noqa: ANN401
    from unlost.vault.staging import segment_holdings  # noqa: PLC0415  start-up

    segments: list[dict[str, Any]] = []
    for segment, held in zip(generation.files, segment_holdings(generation, indices), strict=True):
        by_archive = {name: len(found) for name, found in gathering.archives.get(segment.group, {}).items()}
        segments.append(
            {"name": held.name, "version": held.version, "held": held.archived, "needed": held.needed, "by": by_archive}
        )
    whole = all(each["held"] >= each["needed"] for each in segments)
    return {"number": generation.number, "whole": whole, "segments": segments}


def _print_status(value: dict[str, Any]) -> None:
    say(f"{value['pages']:,} pages carry blocks{', of two versions' if value['updating'] else ''}", level="info")
    rows = [
        (place, str(each["number"]), segment["name"], segment["version"][:12], f"{segment['held']:,}",
         f"{segment['needed']:,}", ", ".join(f"{name} {count:,}" for name, count in sorted(segment["by"].items())))
        for place, found in value["places"].items()
        for each in found["generations"]
        for segment in each["segments"]
    ]  # fmt: skip
    if rows:
        print_table(("place", "version", "segment", "hash", "held", "needed", "by whom"), rows)
    if value["updating"]:
        if value["next_stage_is_safe"]:
            say("archives hold the new version: `unlost vault advance` is safe", level="info")
        elif "archives" in value["places"]:
            say("archives do not hold enough of the new version yet: wait", level="info")
        else:
            say("an update is under way: --ask-archives or --held-in tell whether it may go on", level="info")
