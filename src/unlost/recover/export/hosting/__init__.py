"""Settings of web servers by which the old addresses of an exported site work."""
