"""Maps of archives that give no index: what a sample of addresses, or a search, finds there."""
