"""Archives on this machine: folders of archive files, HAR files and browser caches."""
