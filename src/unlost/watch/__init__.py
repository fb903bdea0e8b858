"""Watches sites: visits them again and again, and reports when one is lost.

Modules, in reading order:
- `site_health`: fetches some pages of a site and says whether it is still that site.
- `losses`: when a site counts as lost, the record of losses, and the hook that is run.
- `lifetimes`: how long resources live on the web and in archives.
- `watcher`: visits sites on schedule; the number of queries that takes.
- `report`: text and HTML.

Builds on check. Must not import jobs, web or the command line.
"""
