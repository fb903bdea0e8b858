"""What a recovery brought back, for people and for programs."""
