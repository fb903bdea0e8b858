"""A web that decays by known rules, and archives with known rules: measurements have a ground truth."""
