"""The comparison with other tools: what it makes up, and how it judges."""
