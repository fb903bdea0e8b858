"""What an archive holds: counted under keys, merged, looked up."""
