"""Exports a recovery: as a browsable site in a folder, ZIP or tar file, or as WARC or WACZ.

Modules in reading order:
contents (what to export), paths (file names), media_types, links (where URLs point in the export), bodies (rewriting),
manifest, targets and packed_targets (where files are written), site (export_site), redirects and hosting (rules for
web servers), warc and wacz.
Must not import report.recovery, api, jobs, web or cli.
"""
