"""WARCs that are written safely: whole whatever happens, and read again by whoever wrote them."""
