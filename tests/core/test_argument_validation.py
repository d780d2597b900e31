import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Bool, Float, Int

from attlas.core.annotations import Beyond
from attlas.core.argument_validation import validate_arguments, validate_record_arguments
from attlas.core.errors import UserError
from attlas.models.networks.softmax_network import SoftmaxNetwork


def total(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> float:
    return float(x.sum() + y.sum())


def first(x: Float[Array, "n d"]) -> Array:
    return x[0]


def marked(x: Float[np.ndarray, " n"], among: Bool[np.ndarray, " n"]) -> float:
    return float(x[among].sum())


def counted(copies: Int[np.ndarray, "n 2"]) -> np.ndarray:
    return copies


def outputs(network: SoftmaxNetwork, x: Float[Array, " d"]) -> Array:
    return network(x)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([[1.0], [2.0]], [1.0], r"^y has shape \(1,\): give \[n\] with n = 2, as x has$"),
        ([1.0], [1.0], r"^x has shape \(1,\): expected axes \[n d\]$"),
        ([[np.nan]], [1.0], r"^x is NaN or holds it: give numbers, or clean the data$"),
        ([[1.0]], [np.inf], r"^y has infinite entries: clean the data$"),
        ([["a"]], [1.0], r"^x has dtype <U1: give real numbers$"),
    ],
)
def test_what_cannot_be_used_is_one_line(x, y, said):
    with pytest.raises(UserError, match=said):
        validate_arguments(total)(x, y)


def test_records_may_be_missing_but_not_of_another_shape():
    assert np.isnan(validate_record_arguments(total)([[np.nan]], [np.inf]))
    with pytest.raises(UserError, match=r"^y has shape"):
        validate_record_arguments(total)([[np.nan]], [1.0, 2.0])


def test_a_bound_may_be_infinite_and_data_may_not():
    assert validate_arguments(lambda_of_bounds, Beyond.INFINITE)(jnp.array([jnp.inf])) == jnp.inf
    with pytest.raises(UserError, match=r"^x has infinite entries"):
        validate_arguments(first, Beyond.INFINITE)([[np.inf]])


def lambda_of_bounds(bounds: Float[Array, " n"]) -> Array:
    return bounds[0]


def test_masks_are_booleans_of_the_shape_of_their_array():
    assert validate_arguments(marked)([1, 2, 4], [True, False, True]) == 5
    with pytest.raises(UserError, match=r"^among has shape \(2,\): give \[n\] with n = 3"):
        validate_arguments(marked)([1, 2, 4], [True, False])
    with pytest.raises(UserError, match=r"^among has dtype float64: give booleans$"):
        validate_arguments(marked)([1.0], [0.5])
    with pytest.raises(UserError, match=r"^among has rows of different lengths"):
        validate_arguments(marked)([1, 2], [[True], [True, False]])


def test_whole_numbers_stay_numpy_and_fractions_are_refused():
    assert validate_arguments(counted)([[1.0, 2.0]]).dtype == np.int64
    with pytest.raises(UserError, match="give a whole number"):
        validate_arguments(counted)([[1.5, 2.0]])


def test_the_arrays_of_a_model_are_read_by_its_annotations():
    good = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.ones((1, 2)))
    narrow = eqx.tree_at(lambda network: network.a, good, jnp.ones((1, 3)))
    with pytest.raises(UserError, match=r"^network\.a has shape \(1, 3\): give \[k m\] with m = 2"):
        validate_arguments(outputs)(narrow, jnp.ones(1))
    spoilt = SoftmaxNetwork(jnp.array([[0.0, jnp.inf]]), jnp.ones((1, 2)))
    with pytest.raises(UserError, match=r"^network\.W has infinite entries"):
        validate_arguments(outputs, Beyond.INFINITE)(spoilt, jnp.ones(1))
    nothing = eqx.tree_at(lambda network: network.W, good, None)
    with pytest.raises(UserError, match=r"^network\.W has NoneType: give real numbers$"):
        validate_arguments(outputs)(nothing, jnp.ones(1))
    with pytest.raises(UserError, match=r"^network is None: give a SoftmaxNetwork$"):
        validate_arguments(outputs)(None, jnp.ones(1))


def test_float64_is_computed_with_under_the_narrow_default_and_float32_is_followed():
    with jax.enable_x64(False):
        assert validate_arguments(first)(np.ones((1, 1))).dtype == np.float64
        assert validate_arguments(first)(jnp.ones((1, 1))).dtype == np.float32


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.float16])
def test_records_keep_their_type_where_numpy_computes_in_it(kind):
    own = np.float32 if kind is np.float32 else np.float64
    for stands in (validate_arguments, validate_record_arguments):
        assert stands(kept)(np.ones(1, kind)).dtype == own
    assert validate_arguments(kept, Beyond.INFINITE)(np.ones(1, kind)).dtype == np.float64


def kept(x: Float[np.ndarray, " n"]) -> np.ndarray:
    return x


def test_what_is_traced_is_handed_on():
    assert jax.jit(validate_arguments(first))(jnp.array([[jnp.inf]])).tolist() == [jnp.inf]


def test_a_whole_number_beyond_float64_is_no_error():
    def size(n: int) -> int:
        return n.bit_length()

    assert validate_arguments(size)(10**400) == 1329
