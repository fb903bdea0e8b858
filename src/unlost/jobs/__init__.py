"""Recoveries that wait for their turn: what they are, whose turn it is, and who works on which."""
