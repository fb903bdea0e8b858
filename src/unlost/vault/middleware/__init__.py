"""Blocks into the answers of a running site: middleware for ASGI and WSGI.

`carrying` knows what a page carries, `answers` what may be done to an answer; `asgi` and `wsgi` speak a protocol.
"""
