"""Who holds what, alone and together: a list of pages, asked of many archives."""
