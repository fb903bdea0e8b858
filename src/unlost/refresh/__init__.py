"""What changed since the last visit: learned from a site's own history, decided from headers, checked by audits.

`visit` is one line of a log; `reading` reads logs and WARCs into a `History`; `matrix` and `schemes` count what headers
claim and judge every way to act on it; `learning` makes a `Policy` of it, by which a harvest decides page by page.
"""
