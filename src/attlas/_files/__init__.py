"""Files that are written completely or not at all, and files of others, read without trust."""
