"""Right answers: losses, errors and ablations are those of transformers and of torch alone."""

import numpy as np
import pytest
from captured_models import IMAGE, TEXT, library, random_model, random_tokens

torch, transformers = library()

from attlas.audit.audit import AuditOptions, audit  # noqa: E402
from attlas.audit.captured.captured_ablation import CapturedLoss  # noqa: E402
from attlas.audit.captured.captured_answers import SCALE, CapturedAnswers  # noqa: E402
from attlas.audit.captured.captured_audit import recognised_heads  # noqa: E402
from attlas.audit.captured.captured_trial import CapturedTrial  # noqa: E402
from attlas.audit.captured.evaluation_count import most_evaluations  # noqa: E402
from attlas.audit.opened_model import opened  # noqa: E402
from attlas.capture.captured_model import captured_module  # noqa: E402
from attlas.core.errors import UserError  # noqa: E402
from attlas.experiments.schema import violations  # noqa: E402
from attlas.site.audit_page import render_audit  # noqa: E402

DEEP = AuditOptions(curvature=False, special=(1,), context=16, deep_sequences=8)
CLASSES = 3


def classifier(kind, seed=0, **settings):
    """A random classifier in float64 with a head of `CLASSES` classes."""
    torch.manual_seed(seed)
    sizes = TEXT | {"num_labels": CLASSES, "initializer_range": 0.5} | settings
    config = transformers.AutoConfig.for_model(kind, **sizes)
    of = "Image" if kind == "vit" else "Sequence"
    loader = getattr(transformers, f"AutoModelFor{of}Classification")
    return loader.from_config(config, attn_implementation="eager").eval().double()


def texts(count=8):
    draw = np.random.default_rng(2)
    return [draw.integers(5, 55, size) for size in draw.integers(4, 9, count)]


def labels(count=8):
    return np.arange(count) % CLASSES


def losses_by_torch(module, examples, right, name="input_ids"):
    """One example after the other, by torch's own loss; and whether the class is right."""
    losses, errors = [], []
    for example, label in zip(examples, right, strict=True):
        with torch.no_grad():
            logits = module(**{name: torch.as_tensor(example)[None]}).logits
        losses.append(float(torch.nn.functional.cross_entropy(logits, torch.tensor([label]))))
        errors.append(int(logits.argmax()) != label)
    return np.array(losses), np.array(errors)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_losses_and_errors_of_a_classifier_are_those_of_torch(kind):
    """gpt2 has no padding token, without which it takes one sequence at a time."""
    changes = {"pad_token_id": None} if kind == "gpt2" else {}
    module = classifier(kind, **changes)
    expected, wrong = losses_by_torch(module, texts(), labels())
    answers = CapturedAnswers(captured_module(module), texts(), labels())
    np.testing.assert_allclose(answers.losses(), expected, rtol=1e-10)
    assert answers.errors().losses().tolist() == wrong.astype(float).tolist()
    assert 0 < wrong.sum() < 8
    heads = [(0, 1), (1, 2)]
    changed = answers.losses(heads)
    errors = answers.errors().losses(heads)
    with torch.no_grad():
        for layer, head in heads:
            if kind == "gpt2":
                module.transformer.h[layer].attn.c_proj.weight[8 * head : 8 * head + 8] = 0
            else:
                output = module.bert.encoder.layer[layer].attention.output.dense
                output.weight[:, 8 * head : 8 * head + 8] = 0
    expected, wrong = losses_by_torch(module, texts(), labels())
    np.testing.assert_allclose(changed, expected, rtol=1e-9)
    assert errors.tolist() == wrong.astype(float).tolist()
    without = CapturedAnswers(captured_module(module), texts(), labels())
    assert np.abs(changed - without.losses()).max() < 1e-9


@pytest.mark.thorough
def test_an_audit_with_labels_ends_in_what_to_do():
    module = classifier("bert")
    report = audit(module, texts(), labels=labels(), level="deep", options=DEEP)
    document = report.to_json()
    assert violations(document, "audit") == ()
    assert 0 < document["facts"]["accuracy"] < 1
    assert document["facts"]["loss_unit"] == "nats"
    assert any("cross-entropy of the labels" in note for note in report.notes)
    for decision in document["decisions"]:
        assert decision["examples"] == "texts"
        assert decision["accuracy"]["name"] == "accuracy"
        assert ", the accuracy of " in decision["effect"]
        assert decision["accuracy"]["low"] <= decision["accuracy"]["change"]
    page = render_audit(document)
    assert "the accuracy of " in page
    # Weights at random guess, and the page says so above the actions.
    caution = document["facts"]["caution"]
    assert "that may only guess" in caution
    place = page.index("that may only guess")
    assert page.index('id="findings"') < place < page.index("<h4>")
    assert page.count("that may only guess") == 1


@pytest.mark.thorough
def test_every_change_is_evaluated_once_and_the_time_is_said_before(monkeypatch):
    """Errors are read off the evaluation of the losses, and single heads are not tried again."""
    evaluations, reports, lines = [], [], []
    evaluate = CapturedAnswers._evaluation

    def counted(answers, change):
        evaluations.append(len(lines))
        return evaluate(answers, change)

    monkeypatch.setattr(CapturedAnswers, "_evaluation", counted)
    audit(
        classifier("bert"),
        texts(),
        labels=labels(),
        level="deep",
        options=DEEP,
        progress=lambda *report: reports.append(report),
        say=lines.append,
    )
    most = most_evaluations(heads=8, layers=2)
    # All but a few are needed: three replacements of eight heads, and rounding of two layers.
    assert 1 + 3 * 8 + 4 <= len(evaluations) <= most
    assert evaluations == [0] + [1] * (len(evaluations) - 1)
    assert lines[0].startswith(f"level deep: at most {most} evaluations of 8 texts, the first in ")
    deep = [report[1:] for report in reports if report[0] == "deep"]
    assert deep == [(done, most) for done in (*range(1, len(evaluations) + 1), most)]


def embeddings(module, sequences):
    rows = []
    for sequence in sequences:
        with torch.no_grad():
            states = module(input_ids=torch.as_tensor(sequence)[None]).last_hidden_state
        rows.append(states[0].mean(dim=0).numpy())
    rows = np.stack(rows)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_retrieval_is_that_of_cosines_of_mean_embeddings():
    module = random_model("bert")
    queries, documents = texts(), [np.append(each, each[::-1]) for each in texts()][::-1]
    places = np.arange(8)[::-1]
    base = module.base_model
    cosines = embeddings(base, queries) @ embeddings(base, documents).T
    target = torch.as_tensor(places.copy())
    expected = torch.nn.functional.cross_entropy(
        torch.as_tensor(SCALE * cosines), target, reduction="none"
    )
    model = captured_module(module).without_head()
    answers = CapturedAnswers(model, queries, places, documents)
    np.testing.assert_allclose(answers.losses(), expected.numpy(), rtol=1e-8, atol=1e-10)
    assert answers.errors().losses().tolist() == (cosines.argmax(1) != places).tolist()
    trial = CapturedTrial(answers, recognised_heads(model, [*queries, *documents]))
    assert trial.observed().products.shape == (8, 8)


@pytest.mark.thorough
def test_an_audit_of_a_retrieval_is_about_the_accuracy_at_one():
    queries = texts()
    documents = [np.append(each, [7, 9]) for each in queries]
    module = random_model("bert")
    report = audit(module, queries, documents=documents, level="deep", options=DEEP)
    document = report.to_json()
    assert violations(document, "audit") == ()
    assert document["facts"]["retrieval_accuracy"] <= document["facts"]["reciprocal_rank"]
    assert {each["examples"] for each in document["decisions"]} == {"queries"}
    assert {each["accuracy"]["name"] for each in document["decisions"]} == {"accuracy@1"}
    assert any("8 queries look for their own among 8 documents" in note for note in report.notes)


def pictures(count=8):
    return list(np.random.default_rng(3).normal(size=(count, 3, 12, 12)))


@pytest.mark.thorough
def test_a_vision_model_is_audited_on_images_with_labels():
    module = classifier("vit", **IMAGE)
    expected, wrong = losses_by_torch(module, pictures(), labels(), "pixel_values")
    answers = CapturedAnswers(captured_module(module), pictures(), labels())
    # By itself the library takes this softmax in float32.
    np.testing.assert_allclose(answers.losses(), expected, rtol=1e-5)
    assert answers.errors().losses().tolist() == wrong.astype(float).tolist()
    report = audit(module, pictures(), labels=labels(), level="deep", options=DEEP)
    document = report.to_json()
    assert violations(document, "audit") == ()
    assert np.isfinite(report.heads.sink_shuffled.values).all()
    # the class token is the one special token: it is the first
    np.testing.assert_allclose(report.heads.special_mass.values, report.heads.first_mass.values)
    assert {each["examples"] for each in document["decisions"]} == {"images"}
    assert any("8 images of 12 times 12 points" in note for note in report.notes)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["vit", "dinov2", "clip"])
def test_images_without_labels_compare_a_changed_model_with_the_unchanged_one(name):
    model = captured_module(random_model(name)).image_tower()
    report = audit(model, pictures(), level="deep", options=DEEP)
    assert violations(report.to_json(), "audit") == ()
    assert report.facts["loss"] == pytest.approx(0, abs=1e-12)
    loss = CapturedLoss(model, pictures(), ())
    assert loss.losses([(0, 1)]).min() > 0


def test_answers_that_do_not_fit_are_refused_in_one_line():
    module = classifier("bert")
    with pytest.raises(UserError, match=r"label 3 is no class of .*, which has 3: give 0 to 2"):
        audit(module, texts(3), labels=[0, 1, 3])
    with pytest.raises(UserError, match=r"labels of shape \(2,\) for 3 sequences"):
        audit(module, texts(3), labels=[0, 1])
    with pytest.raises(UserError, match="label -1: give numbers from 0"):
        audit(module, texts(3), labels=[0, 1, -1])
    with pytest.raises(UserError, match="2 documents for 3 sequences"):
        audit(module, texts(3), documents=texts(2))
    with pytest.raises(UserError, match="label 2 is the place of none of 2 documents"):
        audit(module, texts(3), labels=[0, 1, 2], documents=texts(2))
    with pytest.raises(UserError, match="gives no logits of classes"):
        audit(random_model("bert"), texts(3), labels=[0, 1, 0])
    with pytest.raises(UserError, match="need sequences"):
        audit(module, labels=[0, 1])
    with pytest.raises(UserError, match="as they run in PyTorch: leave capture=False out"):
        audit(module, texts(3), labels=[0, 1, 0], capture=False)
    with pytest.raises(UserError, match=r"as they run in PyTorch: give its folder"):
        audit(opened(random_model("bert"), False), list(random_tokens()), labels=[0, 1, 0])
    vision = classifier("vit", **IMAGE)
    with pytest.raises(UserError, match=r"image 1 has shape \(3, 8, 8\), the first \(3, 12, 12\)"):
        audit(vision, [np.zeros((3, 12, 12)), np.zeros((3, 8, 8))])
    with pytest.raises(UserError, match="image 0 is no finite array"):
        audit(vision, [np.full((3, 12, 12), np.nan)])
