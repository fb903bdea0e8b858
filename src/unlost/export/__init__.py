"""Exports a recovery as a browsable site (folder, ZIP or tar file), as WARC, or as WACZ.

Modules in reading order:

- contents: what to export
- paths and media_types: names of files, and their types and extensions
- links: targets of links in the export
- manifest: which file is the capture of which URL
- formats: the registry of export formats, options and results, and `export_recovery`
- targets and packed_targets: folders, ZIP and tar files, written atomically
- site: rewriting of pages, and `export_site`, which combines the modules above
- redirects and hosting: configuration for web servers
- warc and wacz: archive files

The package must not import unlost.report.recovery, unlost.api, unlost.jobs, unlost.web or unlost.cli.
"""

from unlost.lazy_exports import lazy_exports

__getattr__ = lazy_exports(__name__)
