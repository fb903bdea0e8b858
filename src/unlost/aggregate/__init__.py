"""Who has a page, and when: chooses archives, asks them at once, merges what they list, and keeps it for a while."""
