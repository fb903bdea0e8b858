"""Server files of a dynamic site, erasure-coded and hidden in the site's own pages, so that web archives preserve them.

docs/vault.md describes the use, docs/vault-format.md the format of the blocks.

Modules, in reading order:

- `erasure_code`, `encryption`, `tar_archive`: coding, age encryption, deterministic archives and safe extraction.
- `block`: serialization of a block and how a page carries it.
- `plan`: number and size of blocks, and their assignment to pages.
- `server_files`: selection of files and their division into segments.
- `state`: the vault on disk.
- `pages`: inserting and stripping blocks, lists of pages.
- `pack`: packing and staged updates.
- `injector`: writing blocks into a static site.
- `site_crawl`, `collector`: finding blocks in live pages, archives and recoveries.
- `recovery`: decoding and unpacking.
- `middleware`: inserting blocks into the responses of a running site.
- `slow_decoder`: an independent decoder in pure Python, printed in the format's documentation.

Must not import the command line or the web service.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.vault.block import BEGIN_MARKER as BEGIN_MARKER
    from unlost.vault.block import END_MARKER as END_MARKER
    from unlost.vault.block import KIND_FILES as KIND_FILES
    from unlost.vault.block import BlockHeader as BlockHeader
    from unlost.vault.block import Carrier as Carrier
    from unlost.vault.block import VaultBlock as VaultBlock
    from unlost.vault.block import find_blocks as find_blocks
    from unlost.vault.block import serialize_block as serialize_block
    from unlost.vault.block import wrap_in_carrier as wrap_in_carrier
    from unlost.vault.collector import BlockCollector as BlockCollector
    from unlost.vault.collector import block_indices as block_indices
    from unlost.vault.collector import collect_blocks as collect_blocks
    from unlost.vault.encryption import DecryptionKeys as DecryptionKeys
    from unlost.vault.encryption import EncryptionOptions as EncryptionOptions
    from unlost.vault.erasure_code import MAX_BLOCKS as MAX_BLOCKS
    from unlost.vault.erasure_code import CodeShape as CodeShape
    from unlost.vault.erasure_code import count_needed_blocks as count_needed_blocks
    from unlost.vault.erasure_code import smallest_shape as smallest_shape
    from unlost.vault.injector import inject_blocks as inject_blocks
    from unlost.vault.injector import remove_blocks as remove_blocks
    from unlost.vault.pack import PackOptions as PackOptions
    from unlost.vault.pack import PackResult as PackResult
    from unlost.vault.pack import finish_update as finish_update
    from unlost.vault.pack import pack_vault as pack_vault
    from unlost.vault.pack import segment_holdings as segment_holdings
    from unlost.vault.pages import iter_html_files as iter_html_files
    from unlost.vault.pages import read_page_list as read_page_list
    from unlost.vault.pages import read_site_folder as read_site_folder
    from unlost.vault.pages import strip_blocks as strip_blocks
    from unlost.vault.plan import CarrierPage as CarrierPage
    from unlost.vault.plan import plan_blocks as plan_blocks
    from unlost.vault.recovery import VaultRecovery as VaultRecovery
    from unlost.vault.recovery import is_complete as is_complete
    from unlost.vault.recovery import recover_files as recover_files
    from unlost.vault.server_files import ServerFile as ServerFile
    from unlost.vault.server_files import select_files as select_files
    from unlost.vault.site_crawl import SiteCrawl as SiteCrawl
    from unlost.vault.state import BLOCKS_FOLDER as BLOCKS_FOLDER
    from unlost.vault.state import STATE_NAME as STATE_NAME
    from unlost.vault.state import Vault as Vault
    from unlost.vault.state import VaultSettings as VaultSettings
    from unlost.vault.state import lock_vault as lock_vault
    from unlost.vault.state import open_vault as open_vault
    from unlost.vault.state import parse_manifest as parse_manifest
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "block": (
                "BEGIN_MARKER BlockHeader Carrier END_MARKER KIND_FILES VaultBlock find_blocks serialize_block "
                "wrap_in_carrier"
            ),
            "collector": "BlockCollector block_indices collect_blocks",
            "encryption": "DecryptionKeys EncryptionOptions",
            "erasure_code": "CodeShape MAX_BLOCKS count_needed_blocks smallest_shape",
            "injector": "inject_blocks remove_blocks",
            "pack": "PackOptions PackResult finish_update pack_vault segment_holdings",
            "pages": "iter_html_files read_page_list read_site_folder strip_blocks",
            "plan": "CarrierPage plan_blocks",
            "recovery": "VaultRecovery is_complete recover_files",
            "server_files": "ServerFile select_files",
            "site_crawl": "SiteCrawl",
            "state": "BLOCKS_FOLDER STATE_NAME Vault VaultSettings lock_vault open_vault parse_manifest",
        },
    )
