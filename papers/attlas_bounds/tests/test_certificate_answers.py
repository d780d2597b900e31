"""What is said of certificates follows from their records: every conclusion turns with one."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import attlas as at
from attlas.experiments.find import one_named
from attlas.experiments.store import PUBLISHED


def published(name):
    return at.load(name, scale="paper", results=PUBLISHED).copy(deep=True)


def said(name, data):
    return one_named(name).answered_with_values(data)


def captions(name, data):
    figures = one_named(name).drawn(data)
    plt.close("all")
    return " ".join(each.caption for each in figures)


def gaining(data, sizes):
    """Posteriors certify half as much error as the half, at some numbers of images."""
    gained = data.half * 0.5 + 0 * data.posterior
    return data.assign(
        posterior=data.posterior.where(~data.n.isin(sizes), gained),
        certified=data.certified.where(~data.n.isin(sizes), data.half * 0.5),
    )


def test_pac_bayes_gains_where_the_record_says_so():
    data = published("digit_patches")
    sizes = data.n.values
    text, values = said("digit_patches", data)
    assert values["never"] == bool((data.posterior.min("step") >= data.half).all())
    everywhere, _ = said("digit_patches", gaining(data, sizes))
    somewhere, _ = said("digit_patches", gaining(data, sizes[:1]))
    assert everywhere.startswith("Yes: from")
    assert somewhere.startswith(f"At $n =$ {sizes[0]} alone")
    nowhere, _ = said("digit_patches", data.assign(posterior=data.half + 0.1 + 0 * data.posterior))
    assert nowhere.startswith("No: from")
    assert len({text, everywhere, somewhere, nowhere}) >= 3
    assert "(PAC-Bayes; test error" in everywhere
    assert "(the half; test error" in nowhere


def test_what_is_certified_is_said_and_where_nothing_is_it_is_said_too():
    data = published("digit_patches")
    last = data.isel(n=-1)
    text, values = said("digit_patches", data)
    assert f"least of 5, {100 * float(last.certified):.2g} %" in text
    assert f"held-out half certifies {100 * float(last.half):.2g} %" in text
    assert f"{100 * float(last.half_alone):.2g} % alone" in captions("digit_patches", data)
    assert values["half"] != values["half_alone"]
    worse = data.assign(certified=0 * data.certified + 0.7)
    assert "Nothing is certified below guessing" in said("digit_patches", worse)[0]


def test_farther_posteriors_are_called_worse_only_where_they_are():
    data = published("digit_patches")
    phrase = "the farther it moves"
    order = np.argsort(data.nats.isel(n=-1).values)
    rising = data.assign(posterior=data.posterior * 0 + np.arange(1, 5)[np.argsort(order)] / 10)
    falling = rising.assign(posterior=0.5 - rising.posterior)
    assert phrase in said("digit_patches", rising)[0]
    assert phrase not in said("digit_patches", falling)[0]


def test_the_ledger_names_the_least_of_the_bounds_that_paid_for_the_choice():
    data = published("margin_ledger")
    fewest = data.isel(T=0)
    text, values = said("margin_ledger", data)
    bounds = fewest.shared.isel(step=slice(1, None))
    assert float(fewest.least) == float(bounds.min())
    assert values["name"] == str(bounds.step.values[int(np.argmin(bounds.values))])
    assert f"least of {bounds.size} bounds" in text
    assert (fewest.shared[1:] >= fewest.certified[1:]).all()
    assert float(fewest.least) > float(fewest.certified[1:].min())
    mirrored = data.assign(shared=data.shared.copy(data=data.shared.values[:, ::-1]))
    assert said("margin_ledger", mirrored)[1]["name"] != values["name"]


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda data: data.assign(least=0 * data.least + 0.6), "nothing is certified"),
        (lambda data: data.assign(needed=data.needed * np.inf), "infinite at this scale"),
        (
            lambda data: data.assign(needed=data.needed.copy(data=data.needed * 0 + np.arange(10))),
            "No bound needs fewer",
        ),
    ],
)
def test_conclusions_of_the_ledger_turn(change, phrase):
    data = published("margin_ledger")
    assert phrase not in said("margin_ledger", data)[0]
    assert phrase in said("margin_ledger", change(data))[0]


@pytest.mark.parametrize("name", ["digit_patches", "margin_ledger"])
def test_captions_follow_their_records(name):
    data = published(name)
    scaled = data.map(lambda a: 0.5 * a if a.dtype.kind == "f" else a)
    assert captions(name, scaled) != captions(name, data)
