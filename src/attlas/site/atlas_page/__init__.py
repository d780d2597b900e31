"""The atlas's JavaScript: search, filters, and definitions of terms."""
