"""Makes a site of a recovery again: files that browse and host as they stand, or archive files for replay."""
