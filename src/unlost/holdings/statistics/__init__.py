"""What an archive's holdings are like: gathered in one pass, merged, and made into tables, curves and a page."""
