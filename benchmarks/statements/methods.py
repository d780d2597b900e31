"""Names of the searches of attlas that are compared, and of the halves of the statements."""

OURS = {"auto": "attlas", "draws": "attlas, draws alone", "moves": "attlas, moves alone"}
"""What the table calls each method of a challenge."""
HALVES = ("open", "closed")
"""Methods are developed on the first; the second is for the report alone."""
