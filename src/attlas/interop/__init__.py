"""Bridge: trained models of other libraries, in one canonical form."""
