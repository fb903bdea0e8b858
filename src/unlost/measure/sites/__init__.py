"""Sites, wherever they are kept: archive files, folders, recoveries.

`opening` tells which it is; `warc_site`, `recovery_site` and `folder_site` read one each into a `table`.
"""
