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

The package must not import the command line or the web service.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
