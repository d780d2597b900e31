"""One entry per quantity of an audit."""

from attlas.audit.data_level.data_quantities import DEPTH_QUANTITIES, HEAD_QUANTITIES
from attlas.audit.deep_level.deep_level import CURVATURE_QUANTITIES, DEEP_QUANTITIES
from attlas.audit.quantities import FACTS, QUANTITIES
from attlas.audit.weights_level.weights_level import WEIGHT_QUANTITIES


def test_no_name_is_used_twice():
    levels = (
        *(DEEP_QUANTITIES, CURVATURE_QUANTITIES, HEAD_QUANTITIES, WEIGHT_QUANTITIES),
        DEPTH_QUANTITIES,
    )
    assert len(QUANTITIES) == sum(map(len, levels))
    assert not set(QUANTITIES) & set(FACTS)


def test_a_reference_is_named_after_its_quantity():
    for name, quantity in QUANTITIES.items():
        assert quantity.null in ("", f"{name}_null")


def test_pages_show_certificates_before_the_attacks_on_them():
    assert [name for name, quantity in QUANTITIES.items() if quantity.ladder] == [
        "ball_certificate",
        "ball_attack",
        "local_certificate",
        "local_attack",
    ]


def test_a_curve_is_recorded_and_columns_have_different_titles():
    assert all(quantity.follow for quantity in QUANTITIES.values() if quantity.curve)
    columns = [quantity.column for quantity in QUANTITIES.values() if quantity.column]
    assert len(set(columns)) == len(columns) == 12
