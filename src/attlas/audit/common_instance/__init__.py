"""Every paper's measurements on the heads of one small problem, for the common instance."""
