"""What many visits of a site say together: how long its resources live, and whether it is lost."""
