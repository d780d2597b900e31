"""What attention does: its rows, concentration, direction and the margins it reaches."""
