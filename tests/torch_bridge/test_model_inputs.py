"""Inputs reach a model as keywords, as arguments, or alone, on its device."""

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.torch.model_inputs import moved, run_on  # noqa: E402


class Kept(torch.nn.Module):
    """Returns what it is called with."""

    def forward(self, *arguments, **keywords):
        """Arguments and keywords."""
        return arguments, keywords


def test_mappings_tuples_and_single_inputs():
    x, y = torch.zeros(1), torch.ones(1)
    meta = torch.device("meta")
    arguments, keywords = run_on(Kept(), (x, y, "text"), meta)
    assert [str(a.device) for a in arguments[:2]] == ["meta", "meta"]
    assert (arguments[2], keywords) == ("text", {})
    arguments, keywords = run_on(Kept(), {"x": x, "use_cache": False}, meta)
    assert (arguments, keywords["use_cache"], str(keywords["x"].device)) == ((), False, "meta")
    arguments, keywords = run_on(Kept(), [x, y], x.device)
    assert (arguments, keywords) == (([x, y],), {})
    assert moved(3, meta) == 3
