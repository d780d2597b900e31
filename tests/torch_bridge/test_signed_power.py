"""Signed powers against NumPy's in float64, and an entry's bits wherever it stands."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.torch.signed_power import power_of, signed_power_  # noqa: E402

EXPONENTS = [0.1, 1 / 9, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4 / 3, 9.0, 10.0]


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_agree_with_numpy(exponent, dtype, foreach):
    """Roots and products round once each: at most 3 roots, amplified by 16, and 5 products."""
    # No entry so small that its tenth power underflows in float32, but for the zero.
    x = torch.cat([torch.linspace(-2, 2, 1000, dtype=dtype), torch.zeros(1, dtype=dtype)])
    out = torch.empty_like(x)
    signed_power_([out], [x], power_of(exponent, dtype), foreach)
    wide = x.double().numpy()
    expected = np.sign(wide) * np.abs(wide) ** exponent
    error = np.abs(out.double().numpy() - expected)
    # The exponent itself is rounded to the type: |log x| <= 7 of the smallest entry.
    allowed = (2 * max(exponent, 1) + 7 * exponent + 2) * torch.finfo(dtype).eps
    assert np.all(error <= allowed * np.abs(expected))
    assert np.array_equal(out.numpy() == 0, x.numpy() == 0)


@pytest.mark.parametrize("exponent", [0.7, 1 / 9])
def test_an_entry_has_the_same_power_wherever_it_stands(exponent):
    x = torch.rand(999, dtype=torch.float32)
    power = power_of(exponent, x.dtype)
    whole, parts = torch.empty_like(x), torch.empty_like(x)
    signed_power_([whole], [x], power)
    for start in range(0, 999, 37):
        piece = slice(start, start + 37)
        signed_power_([parts[piece]], [x[piece]], power)
    assert torch.equal(whole, parts)
    table, strided = x.view(27, 37), torch.empty(37, 27).T
    signed_power_([strided], [table], power)
    assert torch.equal(strided.flatten(), whole)


def test_roots_and_products_are_found():
    assert power_of(1.5, torch.float32)[1:] == (1, 3)
    assert power_of(1.5, torch.float64)[1:] == (0, 0)
    assert power_of(1 / 9, torch.float32)[1:] == (0, 0)
