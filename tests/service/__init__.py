"""The web service, as its clients see it."""
