"""What makes commands of tests believe that it is earlier."""
