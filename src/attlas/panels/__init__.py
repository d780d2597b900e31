"""Show: six kinds of panel and one kind of table, from a data set with named axes."""
