"""Speeds and sizes, as ratios to a baseline measured in the same run. Each module is one report."""
