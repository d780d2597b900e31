"""The networks of the paper: two layers, self-attention, recurrent attention, LSTM."""
