"""Operations of JAX without a rule in digits, with the reason."""

_DEVICES = "it moves numbers between devices"
_RANDOM = "it draws random numbers"
_FORMAT = "its result is made of the bits of a float"
_ANY = "any function may combine its numbers"
_VECTORS = "its result is one of many that a decomposition may have"

_UNWRITTEN = "none is written, as few programs have it"

OMISSIONS: dict[str, str] = {
    **dict.fromkeys(("all_gather", "all_to_all", "axis_index", "pmax", "pmin"), _DEVICES),
    **dict.fromkeys(("ppermute", "psum", "ragged_all_to_all", "sharding_constraint"), _DEVICES),
    **dict.fromkeys(("after_all", "create_token", "dce_sink", "stage"), "it has no numbers"),
    **dict.fromkeys(("rng_bit_generator", "rng_uniform"), _RANDOM),
    **dict.fromkeys(("nextafter", "reduce_precision", "bitcast_convert_type"), _FORMAT),
    **dict.fromkeys(("reduce", "reduce_window", "select_and_scatter"), _ANY),
    **dict.fromkeys(("hessenberg", "schur", "tridiagonal", "ormqr"), _VECTORS),
    **dict.fromkeys(("cholesky_update", "householder_product"), _UNWRITTEN),
    **dict.fromkeys(("symmetric_product", "tridiagonal_solve"), _UNWRITTEN),
    "approx_top_k": "its result may be another one on each machine",
    "select_and_gather_add": "it is the derivative of an extreme over windows, where numbers meet",
    "select_and_scatter_add": "it is the derivative of an extreme over windows, where numbers meet",
}
"""Reasons by the name of the primitive."""
OF_INTEGERS = frozenset({
    *("and", "or", "xor", "not", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
    *("clz", "population_count", "mulhi", "reduce_and", "reduce_or", "reduce_xor"),
    *("lu_pivots_to_permutation", "iota", "select_n"),
})  # fmt: skip
"""Operations on whole numbers, truth values and places, which JAX computes without rounding."""
