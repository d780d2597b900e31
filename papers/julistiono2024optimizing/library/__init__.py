"""Training, flows, solvers and measures that the claims and experiments of this paper use."""
