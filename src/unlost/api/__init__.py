"""What `import unlost` offers: a small and stable surface, each part a few lines over the packages that do the work."""
