"""The web service: the aggregator's endpoints for programs, and a page for people."""
