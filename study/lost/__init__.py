"""Simulates lost sites and the archives that hold parts of them, and recovers the sites.

The archives are in memory; nothing is sent over a network. Recovery and comparison are the production code of
`unlost.recovery` and `unlost.comparison`.
"""
