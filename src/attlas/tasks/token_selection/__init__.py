"""Token selection: an attention head learns which token decides the label."""
