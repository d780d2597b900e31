"""Papers of one's own: where claims and experiments stand outside attlas, and what they are."""
