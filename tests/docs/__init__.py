"""Tests of the documentation: tutorials are run; figures and messages are compared with code and benchmarks."""
