"""One file for each form of the tables, in order. A file that was released is never changed."""
