"""The text of documents."""
