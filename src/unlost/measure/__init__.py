"""How good it is: routing data against what was really held."""
