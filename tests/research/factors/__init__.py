"""What has to do with coming back."""
