"""What gu2024exploring alone is made of."""
