"""Pages for people: to order a recovery, to follow it and pick it up, and to look after all of them."""
