"""Made-up sites that are lost, made-up archives that have kept some of them, and what recovering them comes to.

Nothing here asks a network: the archives answer from memory. Who recovers is the real `unlost.recover`, and who
compares is the real `unlost.measure`.
"""
