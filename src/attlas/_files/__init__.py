"""Files that are whole or as they were, and files that others wrote, read without trust."""
