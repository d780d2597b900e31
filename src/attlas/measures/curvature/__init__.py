"""Hessians: their extreme eigenvalues, exact spectra, flatness and stationary points."""
