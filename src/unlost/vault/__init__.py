"""What makes a dynamic site run, kept in its own pages: packed, coded into blocks, recovered from them.

docs/vault.md says how it is used, docs/vault-format.md what stands in the pages.
"""
