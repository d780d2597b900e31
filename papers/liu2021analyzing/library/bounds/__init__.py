"""Sample sizes, numbers of linear regions and error bounds, as printed and as proved."""
