"""The registry: which archives there are, and what is known about each before it is queried.

models: Archive and its parts. fields: validation of hand-written values. loader: the shipped archives.toml, a user's
own file, or MemGator's archives.json.

Imports nothing but errors and the file helpers; http and archives build on it.
"""
