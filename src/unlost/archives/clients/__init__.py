"""One client for each kind of archive on the network, and what they share: lists, replay, addresses of copies."""
