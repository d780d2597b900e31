"""Survivors that were looked at: by name, why each is no error, or which test is missing."""

_LIU = "papers/liu2021analyzing/library"

JUDGED: dict[str, str] = {
    f"{_LIU}/data/packed_pairs.py:_rows:max exchanged@54": (
        "Equivalent for what is promised: the pairs of a batch are packed in another order, each "
        "still once and in a row with room for it. Only the number of rows may grow."
    ),
    f"{_LIU}/reviews/variants.py:train_reviews:index shifted@203": (
        "Equivalent: two test reviews are placed beside the training data in place of one, and "
        "none is looked at before the end, where all are."
    ),
    "src/attlas/data/token_selection.py:make_separable_selection:literal shifted@7": (
        "True: problems of any number of samples are drawn; the default number is a choice."
    ),
    "src/attlas/measures/complexity/rademacher.py:rademacher_complexity:literal shifted@11": (
        "True: the interval holds for every number of sign vectors; the default is a choice."
    ),
    "src/attlas/solvers/least_norm.py:_rough_multipliers:second factor dropped@175": (
        "Equivalent for the answer: which rough multipliers are positive is only where pivoting "
        "begins; pivots end at the solution from any set, and its certificate judges it."
    ),
}
