"""How well maps, profiles and filters route."""
