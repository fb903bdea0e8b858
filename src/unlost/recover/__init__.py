"""Brings a lost website back: crawls the archives for it, chooses the best captures, keeps them."""
