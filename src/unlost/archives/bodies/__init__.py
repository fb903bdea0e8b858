"""Bodies of copies: kept on disk, taken out of records, without codings, and said not to be whole if they are not."""
