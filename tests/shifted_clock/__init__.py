"""A `sitecustomize` module that shifts the clock of commands."""
