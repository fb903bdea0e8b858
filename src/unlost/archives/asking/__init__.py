"""Carries questions to archives over HTTP: connections, deadlines, redirects, and a word for whatever goes wrong."""
