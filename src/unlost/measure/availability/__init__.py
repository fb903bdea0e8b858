"""What would come back if a site were lost now: states of its resources, how old the copies are, what would help."""
