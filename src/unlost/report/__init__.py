"""What is shown to people: words for numbers, and pages that stand alone."""
