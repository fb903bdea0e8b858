"""Which archives there are: the list that is shipped, a user's own, and MemGator's."""
