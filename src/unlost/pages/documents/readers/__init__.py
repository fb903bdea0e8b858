"""One reader for each family of documents, for the process that reads them: nothing here is imported elsewhere."""
