"""Level weights: certificates and spectra of every head, for every text."""
