"""What the atlas runs in the browser: search, filters, and the meaning of terms."""
