"""Tests of the comparison with other tools: simulated inputs and scoring."""
