"""A recovery as one archive file, for replay: WARC, or WACZ."""
