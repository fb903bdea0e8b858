"""How well maps, profiles and filters route: which questions they send to an archive, which of those it can answer."""
