"""What the benchmark of pruning removes and counts."""

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from benchmarks import torch_pruning  # noqa: E402


def test_the_smallest_entries_of_each_matrix_are_removed_and_of_nothing_else():
    torch.manual_seed(0)
    model = torch_pruning.Classifier(torch_pruning.digits())
    half = torch_pruning.without_smallest(model, 0.5)
    before, after = model.layer.self_attn.in_proj_weight, half.layer.self_attn.in_proj_weight
    for whole, left in zip(before.chunk(3), after.chunk(3), strict=True):
        gone = left == 0
        assert gone.double().mean() == 0.5
        assert whole[gone].abs().max() <= whole[~gone].abs().min()
        assert torch.equal(whole[~gone], left[~gone])
    assert torch.equal(model.layer.linear1.weight, half.layer.linear1.weight)
    assert not torch_pruning.without_smallest(model, 1.0).layer.self_attn.out_proj.weight.any()


def test_what_can_be_removed_ends_at_the_first_share_that_loses_too_much():
    accuracies = {0.0: 0.9, 0.3: 0.91, 0.5: 0.85, 0.7: 0.9}
    assert torch_pruning.removable(accuracies, 0.89) == 0.3
    assert torch_pruning.removable(accuracies, 0.85) == 0.7
    assert torch_pruning.removable(accuracies, 0.95) == 0.0
