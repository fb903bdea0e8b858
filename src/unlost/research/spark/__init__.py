"""The same work on a Spark cluster: maps, profiles and filters, byte for byte as on one machine.

read lines ─► partial results, counted where they were read ─► cut by bounds ─► merged part by part ─► one file

Nothing here is imported unless it is asked for, and PySpark is an extra: `pip install 'unlost[spark]'`.
"""
