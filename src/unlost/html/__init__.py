"""What is in a page: the links that lead on from it."""
