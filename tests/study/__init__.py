"""The study: what it is made of, and that it counts rightly."""
