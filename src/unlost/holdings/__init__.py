"""What archives hold."""
