"""The benches that judge by more than a clock: that they judge rightly."""
