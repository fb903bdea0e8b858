"""Exports a recovery as a browsable site (folder, ZIP or tar file), as WARC, or as WACZ.

Modules in reading order:

- contents: what to export
- paths and media_types: names of files, and their types and extensions
- links: targets of links in the export
- manifest: which file is the capture of which URL
- targets and packed_targets: folders, ZIP and tar files, written atomically
- site: rewriting of pages, and `export_site`, which combines the modules above
- redirects and hosting: configuration for web servers
- warc and wacz: archive files

The package must not import unlost.report.recovery, unlost.api, unlost.jobs, unlost.web or unlost.cli.
"""

from typing import TYPE_CHECKING

from unlost.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from unlost.export.hosting import hosting_files as hosting_files
    from unlost.export.links import EMPTY_IMAGE_URL as EMPTY_IMAGE_URL
    from unlost.export.links import ExportedResource as ExportedResource
    from unlost.export.links import ExternalLinks as ExternalLinks
    from unlost.export.manifest import MANIFEST_NAME as MANIFEST_NAME
    from unlost.export.manifest import read_manifest as read_manifest
    from unlost.export.paths import PathAllocator as PathAllocator
    from unlost.export.paths import PathMapper as PathMapper
    from unlost.export.paths import PathStyle as PathStyle
    from unlost.export.paths import escape_unsafe as escape_unsafe
    from unlost.export.paths import is_default_page as is_default_page
    from unlost.export.paths import relative_to_page as relative_to_page
    from unlost.export.paths import relative_url as relative_url
    from unlost.export.site import MAX_START_PAGE_FILES as MAX_START_PAGE_FILES
    from unlost.export.site import ExportOptions as ExportOptions
    from unlost.export.site import ExportResult as ExportResult
    from unlost.export.site import declare_charset as declare_charset
    from unlost.export.site import export_site as export_site
    from unlost.export.targets import TEMPORARY_SUFFIX as TEMPORARY_SUFFIX
    from unlost.export.targets import WrittenPaths as WrittenPaths
    from unlost.export.targets import open_target as open_target
    from unlost.export.wacz import write_wacz as write_wacz
    from unlost.export.warc import ArchiveFileResult as ArchiveFileResult
    from unlost.export.warc import write_warc as write_warc
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "hosting": "hosting_files",
            "links": "EMPTY_IMAGE_URL ExportedResource ExternalLinks",
            "manifest": "MANIFEST_NAME read_manifest",
            "paths": "PathAllocator PathMapper PathStyle escape_unsafe is_default_page relative_to_page relative_url",
            "site": "ExportOptions ExportResult MAX_START_PAGE_FILES declare_charset export_site",
            "targets": "TEMPORARY_SUFFIX WrittenPaths open_target",
            "wacz": "write_wacz",
            "warc": "ArchiveFileResult write_warc",
        },
    )
