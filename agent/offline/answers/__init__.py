"""What is told of what the tools gave."""
