"""The same work by unlost and by the tools that others use for it, side by side on this machine.

`python -m bench.peers` does all of it and writes `bench/results/peers.md` and `peers.json`; `bench.peers.page` makes
docs/peers.md of the latter. Peers run as processes of environments of their own, below `.neighbours/`, and those that
insist on the address of the Wayback Machine run where nothing but this machine can be reached, and a made-up one has
that address.
"""
