"""What archives are asked for, by their logs: hits, misses, errors, what is wanted and missing, what nobody wants."""
