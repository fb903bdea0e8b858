"""A made-up web whose changes are known, with servers that misbehave as real ones do, and scores of policies on it."""
