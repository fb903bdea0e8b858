"""What visits of sites saw, in one SQLite file: the visit that goes on, and the history of those before."""
