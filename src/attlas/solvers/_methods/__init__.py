"""How `max_margin` solves: methods for batches of problems whose arrays it has read."""
