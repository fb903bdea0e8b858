"""Tests of what `import unlost` offers."""
