"""From addresses to paths of files: legal everywhere, and no two the same."""
