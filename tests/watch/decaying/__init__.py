"""A web that decays by known rules, and archives that keep it by known rules: what is measured of them has a truth."""
