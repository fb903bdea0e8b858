"""The live web, politely: robots, pacing, scope, traps."""
