"""Numbers, statements and tables for a reader, as text and as HTML."""
