"""Made-up sites that are lost and recovered."""
