"""One optimiser of two parts, as schedulers, scalers, Trainer and checkpoints use it."""

import copy
import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.core.errors import UserError  # noqa: E402
from attlas.data.digits import cut_tokens, load_digits  # noqa: E402
from attlas.torch import LpMirrorDescent, attention_groups, split  # noqa: E402
from attlas.torch.split_optimizer import SplitOptimizer  # noqa: E402

ADAMW = functools.partial(torch.optim.AdamW, lr=3e-3)


class Classifier(torch.nn.Module):
    """One encoder layer on the four pixels of a patch, and the mean over patches."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        torch.manual_seed(0)
        self.patches = torch.nn.Linear(4, 16)
        self.places = torch.nn.Parameter(0.1 * torch.randn(16, 16))
        self.layer = torch.nn.TransformerEncoderLayer(
            16, 2, 32, dropout=0.0, activation="gelu", batch_first=True
        )
        self.readout = torch.nn.Linear(16, 10)
        self.to(dtype)

    def forward(self, tokens):
        return self.readout(self.layer(self.patches(tokens) + self.places).mean(1))


def digits(dtype=torch.float32):
    part = load_digits().train
    tokens = torch.tensor(cut_tokens(np.asarray(part.inputs), "patches") / 16).to(dtype)
    return tokens, torch.tensor(np.asarray(part.labels)).long()


def train(model, optimizer, steps, seed=1, scheduler=None, batch=32):
    """Steps of cross-entropy on the digits; the losses."""
    tokens, labels = digits(model.places.dtype)
    draw = torch.Generator().manual_seed(seed)
    losses = []
    for _ in range(steps):
        rows = torch.randint(len(tokens), (batch,), generator=draw)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return losses


def equal(left, right):
    pairs = zip(left.parameters(), right.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


class Both:
    """The two parts as two objects, which the one must equal."""

    def __init__(self, model, p, **settings):
        groups = attention_groups(model, p, show=None)
        self.parts = (LpMirrorDescent(groups[:-1], **settings), ADAMW(groups[-1]["params"]))

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        for part in self.parts:
            part.step()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_object_trains_as_two_bit_for_bit(dtype):
    one, two, other = (Classifier(dtype) for _ in range(3))
    train(one, split(one, 3.0, ADAMW, show=None, momentum=0.9), 5)
    train(two, Both(two, 3.0, momentum=0.9), 5)
    assert equal(one, two)
    train(other, Both(other, 2.0, momentum=0.9), 5)
    assert not equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_checkpoint_goes_on_bit_for_bit(dtype):
    def made(model):
        optimizer = split(model, 1.1, ADAMW, show=None, lr=0.02, momentum=0.5)
        rates = [group["lr"] for group in optimizer.param_groups]
        return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=20)

    model = Classifier(dtype)
    optimizer, scheduler = made(model)
    train(model, optimizer, 5, scheduler=scheduler)
    states = copy.deepcopy([each.state_dict() for each in (model, optimizer, scheduler)])
    again = Classifier(dtype)
    other, later = made(again)
    for each, state in zip((again, other, later), states, strict=True):
        each.load_state_dict(state)
    copied_model, copied = copy.deepcopy((model, optimizer))
    train(copied_model, copied, 1, seed=7)
    train(model, optimizer, 1, seed=7)
    assert equal(model, copied_model)
    scheduler.step()
    train(again, other, 1, seed=7)
    later.step()
    train(model, optimizer, 4, seed=8, scheduler=scheduler)
    train(again, other, 4, seed=8, scheduler=later)
    assert equal(model, again)
    duals = [state["dual"] for state in other.state.values() if "dual" in state]
    assert [dual.dtype for dual in duals] == [torch.float32]


def test_schedulers_reach_both_parts():
    model = Classifier()
    optimizer = split(model, 3.0, ADAMW, show=None)
    rates = [group["lr"] for group in optimizer.param_groups]
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=10)
    mirror, rest = (part.param_groups[0] for part in optimizer.parts)
    momenta = set()
    for _ in range(9):
        train(model, optimizer, 1, scheduler=scheduler)
        assert optimizer.param_groups[0] is mirror
        momenta.add(mirror["momentum"])
        assert mirror["betas"][0] == rest["betas"][0]
    assert min(momenta) == 0.85
    assert max(momenta) == 0.95
    assert mirror["lr"] / 0.01 == pytest.approx(rest["lr"] / 3e-3)
    plain = split(model, 3.0, functools.partial(torch.optim.SGD, lr=0.1), show=None)
    for scheduled in (optimizer, plain):
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(scheduled, 4)
        for _ in range(4):
            train(model, scheduled, 1, scheduler=cosine)
        assert all(abs(group["lr"]) < 1e-9 for group in scheduled.param_groups)


def test_a_gradient_scaler_skips_what_overflows():
    model = Classifier()
    optimizer = split(model, 3.0, ADAMW, show=None)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    tokens, labels = digits()
    before = copy.deepcopy(model)
    for infinite in (True, False):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens[:32]), labels[:32])
        scaler.scale(loss).backward()
        if infinite:
            model.places.grad[0, 0] = torch.inf
        scaler.step(optimizer)
        scaler.update()
        assert equal(model, before) == infinite
    torch.nn.functional.cross_entropy(before(tokens[:32]), labels[:32]).backward()
    split(before, 3.0, ADAMW, show=None).step()
    # The scale is a power of two, and no gradient is near the smallest number.
    assert equal(model, before)


def test_groups_are_added_to_the_part_that_they_name():
    model, more = Classifier(), [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
    optimizer = split(model, 3.0, ADAMW, show=None)
    train(model, optimizer, 1)
    optimizer.add_param_group({"params": more[0], "p": 1.5, "lr": 0.5})
    optimizer.add_param_group({"params": more[1:]})
    assert [len(part.param_groups) for part in optimizer.parts] == [2, 2]
    assert [group["part"] for group in optimizer.param_groups] == [0, 1, 0, 1]
    for w in more:
        w.grad = torch.ones(3)
    optimizer.step()
    assert all((w < 1).all() for w in more)
    with pytest.raises(UserError, match=r"shape \(3,\) is trained by both parts"):
        optimizer.add_param_group({"params": [more[0]]})
    with pytest.raises(UserError, match=r"p = 0\.5 has no mirror map"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))], "p": 0.5})
    assert len(optimizer.param_groups) == 4
    saved = torch.optim.AdamW(model.parameters()).state_dict()
    with pytest.raises(UserError, match=r"the state has groups of parts \[None\]"):
        optimizer.load_state_dict(saved)
    with pytest.raises(UserError, match="is trained by both parts"):
        SplitOptimizer(LpMirrorDescent([more[0]], p=3.0), torch.optim.SGD(more, 0.1))


def test_parts_that_have_trained_keep_their_state():
    model = Classifier()
    both = Both(model, 3.0)
    train(model, both, 2)
    joined = SplitOptimizer(*both.parts)
    other_model, other = copy.deepcopy((model, both))
    train(model, joined, 2, seed=5)
    train(other_model, other, 2, seed=5)
    assert equal(model, other_model)


def test_a_closure_is_called_once():
    model, called = Classifier(), []
    tokens, labels = digits()
    optimizer = split(model, 3.0, ADAMW, show=None)

    def closure():
        called.append(1)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens[:8]), labels[:8])
        loss.backward()
        return loss

    assert optimizer.step(closure).item() > optimizer.step(closure).item()
    assert len(called) == 2


@pytest.mark.thorough
@pytest.mark.parametrize(("p", "momentum"), [(1.1, 0.0), (2.0, 0.9), (3.0, 0.0)])
def test_the_defaults_train_on_digits_at_every_exponent(p, momentum):
    """Guessing has the loss log 10 = 2.3; half of it is asked for."""
    model = Classifier()
    losses = train(model, split(model, p, ADAMW, show=None, momentum=momentum), 300, batch=50)
    assert np.mean(losses[-20:]) < np.log(10) / 2


@pytest.mark.thorough
def test_the_defaults_train_all_weights_and_plain_steps_of_that_size_do_not():
    model, plain = Classifier(), Classifier()
    losses = train(model, LpMirrorDescent(model.parameters(), p=3.0), 300, batch=50)
    assert np.mean(losses[-20:]) < 0.8 * np.log(10)
    rule = LpMirrorDescent(plain.parameters(), lr=1e-3, p=3.0, scaling="plain")
    assert np.mean(train(plain, rule, 300, batch=50)[-20:]) > 0.95 * np.log(10)


def hugging_face():
    """A language model of transformers, and rows to train it on."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    config = transformers.GPT2Config(
        n_embd=16, n_head=2, n_layer=1, vocab_size=50, n_positions=8, bos_token_id=1,
        eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(3, 50, (8, 7), generator=draw)
    return transformers, model, [{"input_ids": row, "labels": row} for row in ids]


@pytest.mark.filterwarnings("ignore")
def test_trainer_trains_with_it_and_resumes_bit_for_bit(tmp_path):
    finals = []
    for folder, resumed in (("straight", None), ("again", "straight/checkpoint-2")):
        transformers, model, rows = hugging_face()
        arguments = transformers.TrainingArguments(
            tmp_path / folder, max_steps=4, save_steps=2, per_device_train_batch_size=2,
            report_to=[], use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False, seed=3,
        )  # fmt: skip
        optimizer = split(model, 1.1, ADAMW, show=None, momentum=0.9)
        trainer = transformers.Trainer(
            model, arguments, train_dataset=rows, optimizers=(optimizer, None)
        )
        trainer.train(resume_from_checkpoint=str(tmp_path / resumed) if resumed else None)
        finals.append(model)
    assert equal(*finals)
    assert not equal(finals[0], hugging_face()[1])


@pytest.mark.filterwarnings("ignore")
def test_accelerate_prepares_it():
    _, model, rows = hugging_face()
    import accelerate

    # Without dropout, whose draws would differ.
    model.eval()
    plain = copy.deepcopy(model)
    accelerator = accelerate.Accelerator(cpu=True)
    ours = split(model, 3.0, ADAMW, show=None)
    prepared, optimizer = accelerator.prepare(model, ours)
    peer = split(plain, 3.0, ADAMW, show=None)
    for _ in range(2):
        for each, rule in ((prepared, optimizer), (plain, peer)):
            rule.zero_grad()
            ids = rows[0]["input_ids"][None]
            loss = each(input_ids=ids, labels=ids).loss
            accelerator.backward(loss) if rule is optimizer else loss.backward()
            rule.step()
    assert equal(model, plain)
    assert len(optimizer.state) == len(list(model.parameters()))
