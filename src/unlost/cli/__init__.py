"""The command line: one file per command, nothing but arguments and printing."""
