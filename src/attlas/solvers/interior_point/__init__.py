"""Interior-point methods for l_p margins, all of a batch together."""
