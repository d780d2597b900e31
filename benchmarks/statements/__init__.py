"""Public statements, false and true, each written as a user would write it."""
