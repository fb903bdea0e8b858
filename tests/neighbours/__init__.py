"""Programs of other people that the tests run, each from its own environment."""
