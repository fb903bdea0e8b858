"""Tests of jobs: state machine, databases, workers and the API."""
