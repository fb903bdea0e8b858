"""Jobs: their rules, their databases, their workers."""
