"""Show: tables, figures and the HTML atlas, from records."""
