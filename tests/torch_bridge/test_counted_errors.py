"""Errors of classifiers, counted whatever form batches and logits have."""

import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.core.errors import UserError  # noqa: E402
from attlas.torch.counted_errors import counted_errors, labelled_batches  # noqa: E402

HOST = torch.device("cpu")


class Fixed(torch.nn.Module):
    """Returns its inputs in some form."""

    def __init__(self, form=lambda logits: logits):
        super().__init__()
        self.form, self.dropout = form, torch.nn.Dropout(0.9)

    def forward(self, logits):
        """Dropout would make most logits zero in training mode."""
        return self.form(self.dropout(logits))


LOGITS = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 1.0], [0.0, 1.0, 2.0], [9.0, 1.0, 2.0]])
LABELS = torch.tensor([1, 2, 2, 0])


@pytest.mark.parametrize(
    "form",
    [
        lambda z: z,
        lambda z: (z, "hidden states"),
        lambda z: type("Output", (), {"logits": z})(),
    ],
)
@pytest.mark.parametrize("shape", ["pair", "mapping", "several"])
def test_forms_of_batches_and_outputs_give_the_same_count(form, shape):
    batches = {
        "pair": [(LOGITS[:1], LABELS[:1]), [LOGITS[1:], LABELS[1:].double()]],
        "mapping": [{"logits": LOGITS, "labels": LABELS}],
        "several": [({"logits": LOGITS}, LABELS)],
    }[shape]
    model = Fixed(form).train()
    assert counted_errors(model, batches, HOST) == (1, 4, 3)
    assert model.training
    assert model.dropout.training


@pytest.mark.parametrize("column", [True, False])
def test_one_logit_is_two_classes_and_what_is_not_finite_is_an_error(column):
    z = torch.tensor([-1.0, 2.0, torch.nan, torch.inf, 0.0])
    data = [(z[:, None] if column else z, torch.tensor([0, 0, 1, 1, 0]))]
    assert counted_errors(Fixed(), data, HOST) == (3, 5, 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no examples"),
        ([LOGITS], "batch 0 has no tensor of one label"),
        ([{"logits": LOGITS}], "batch 0 has no tensor of one label"),
        ([(LOGITS, LABELS), (LOGITS, LOGITS)], "batch 1 has no tensor of one label"),
        ([(LOGITS, LABELS + 0.5)], "not whole"),
        ([(LOGITS, LABELS - 100)], "labels from -100 to -98: the model has logits of the classes"),
        ([(LOGITS, LABELS + 1)], "labels from 1 to 3"),
        ([(LOGITS[:3], LABELS)], r"the model returns \(3, 3\) for 4 labels"),
        ([(LOGITS.long()[None], LABELS)], r"the model returns \(1, 4, 3\)"),
    ],
)
def test_what_does_not_fit_is_refused(data, message):
    with pytest.raises(UserError, match=message):
        counted_errors(Fixed().eval(), data, HOST)


def test_inputs_keep_their_order():
    first, second = torch.zeros(2), torch.ones(2)
    ((inputs, labels),) = labelled_batches([(first, second, LABELS[:2])])
    assert [entry.tolist() for entry in inputs] == [[0, 0], [1, 1]]
    assert labels.tolist() == [1, 2]
