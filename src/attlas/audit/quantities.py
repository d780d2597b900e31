"""All quantities and facts that an audit reports, in the order in which pages show them."""

from attlas.audit.data_level.data_quantities import DEPTH_QUANTITIES, HEAD_QUANTITIES
from attlas.audit.deep_level.deep_level import CURVATURE_QUANTITIES, DEEP_QUANTITIES
from attlas.audit.quantity import Fact
from attlas.audit.weights_level.weights_level import WEIGHT_QUANTITIES

QUANTITIES = {
    quantity.name: quantity
    for quantity in (
        *DEEP_QUANTITIES,
        *CURVATURE_QUANTITIES,
        *HEAD_QUANTITIES,
        *WEIGHT_QUANTITIES,
        *DEPTH_QUANTITIES,
    )
}
"""By name; a quantity says itself whether it has a column, a place in a figure, a curve."""

FACTS = {
    fact.name: fact
    for fact in (
        Fact("slicing_residual", "error of the sum over heads"),
        Fact(
            "sink_share_natural",
            "heads that look mostly at the first token (Sink₁ above 0.3), share [95 % interval]",
        ),
        Fact("sink_share_shuffled", "the same share on shuffled tokens"),
        Fact("sink_share_repeated", "the same share on one repeated token"),
        Fact("sink_share_null", "the same share for uniform attention"),
        Fact("loss", "loss [95 % interval]", "loss_unit"),
        Fact("accuracy", "accuracy [exact 95 % interval]"),
        Fact("retrieval_accuracy", "accuracy@1 of the retrieval [exact 95 % interval]"),
        Fact("reciprocal_rank", "mean reciprocal rank [95 % interval]"),
        Fact("rank_correlation", "rank correlation of Michel’s score with the loss change"),
        Fact("curvature_sequences", "sequences used for the curvature"),
        Fact("curvature_tokens", "tokens used for the curvature"),
        Fact("curvature_products", "Hessian products per head, at most"),
        Fact("explained", "share of the change that the linearised model explains"),
        Fact("lazy", "training was lazy"),
        Fact("loss_linear", "loss of the linearised model"),
        Fact("drift", "drift of the tangent kernel"),
        Fact("alignment", "alignment of the tangent kernels"),
        Fact("distance", "relative distance of the weights"),
        Fact("step_times_sharpness", "step size times sharpness"),
        Fact("threshold", "stability threshold of this optimiser", "threshold_formula", " = {}"),
        Fact("selection_sequences", "sequences used for local optimality"),
        Fact("selection_rows", "tokens used for local optimality, per head"),
    )
}
"""Facts whose key says too little, by key."""
