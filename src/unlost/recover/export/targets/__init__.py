"""Where the files of an exported site go: a folder, or a packed file; whole, or not there at all."""
