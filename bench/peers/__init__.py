"""Comparison of unlost with other tools for the same work, on the same machine.

`python -m bench.peers` runs all measurements and writes `bench/results/peers.md` and `peers.json`; `bench.peers.page`
writes docs/peers.md from the latter. Peers run as processes in their own environments below `.neighbours/`. Tools
with a hard-coded URL of the Wayback Machine run in a network namespace in which a fake archive has that host name.
"""
