"""Third-party programs and fake servers for tests; programs have their own environments."""
