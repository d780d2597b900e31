"""How the files of each architecture map to the canonical form; one file per family."""
