"""One module per schema revision, in order. Released revisions must not be changed."""
