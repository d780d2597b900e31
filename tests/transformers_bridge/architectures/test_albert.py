"""ALBERT of RXNMapper, a real model: what its repository publishes about one head.

The repository maps atoms of a product to atoms of the reactants with one attention map, layer 10,
head 5, and its tests state the confidence of the mapping for these reactions. It gets elements and
bonds from a chemistry library; here they are read off the tokens, which suffices for these texts.
Its canonical order of molecules is left out: the reactions are written in that order, or the
published number was computed without it.
"""

import re

import jax
import numpy as np
import pytest
from reference_transformers import TOLERANCE, libraries

from attlas.transformers.load_model import load_model, open_checkpoint

LAYER, HEAD = 10, 5
NEIGHBOUR_FACTOR = 90.0  # of the published rule: neighbours of mapped atoms map to neighbours
TOKEN = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|[A-Za-z]|\d|[().=#\-+\\/:~@?*$]")
PUBLISHED = {
    "C(C)O.BrC(C)>>CCOCC": 0.9754605679009868,
    "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F": 0.9565619900376546,
    "C1COCCO1.CC(C)(C)OC(=O)CONC(=O)NCc1cccc2ccccc12.Cl>>O=C(O)CONC(=O)NCc1cccc2ccccc12": (
        0.9704424331552834
    ),
}
# Reactant atom of each product atom, read off the published mapped reactions.
MAPPED = {
    "C(C)O.BrC(C)>>CCOCC": [1, 0, 2, 4, 5],
    "C1COCCO1.CC(C)(C)OC(=O)CONC(=O)NCc1cccc2ccccc12.Cl>>O=C(O)CONC(=O)NCc1cccc2ccccc12": [
        12,
        11,
        10,
        *range(13, 30),
    ],
}


def element(token):
    """Symbol of an atom's token, "" for what is no atom."""
    found = re.match(r"\[\d*([A-Z][a-z]?|[a-z]+)|([A-Za-z]+)", token)
    return (found[1] or found[2]).capitalize() if found else ""


def bonds(tokens):
    """Which atoms of the tokens are neighbours: chains, branches and rings."""
    pairs, branches, rings, last, atoms = [], [], {}, None, 0
    for token in tokens:
        if element(token):
            if last is not None:
                pairs.append((last, atoms))
            last, atoms = atoms, atoms + 1
        elif token in {".", "~"}:
            last = None
        elif token == "(":
            branches.append(last)
        elif token == ")":
            last = branches.pop()
        elif token[-1].isdigit():
            if token in rings:
                pairs.append((rings.pop(token), last))
            else:
                rings[token] = last
    assert not branches
    assert not rings
    beside = np.zeros((atoms, atoms), dtype=bool)
    for a, b in pairs:
        beside[a, b] = beside[b, a] = True
    return beside


def atom_mapping(tokens, attention):
    """Reactant atom of each product atom, and the product of the shares that decided it.

    The largest share of attention, both directions added, among atoms of one element is mapped
    first; its two atoms are then taken, and the shares of their neighbours grow.
    """
    arrow = tokens.index(">>")
    left, right = tokens[:arrow], tokens[arrow + 1 :]
    # Positions are one later than in the text: [CLS] stands first.
    sources = [1 + i for i, token in enumerate(left) if element(token)]
    targets = [2 + arrow + i for i, token in enumerate(right) if element(token)]
    both = attention + attention.T
    weights = both[np.ix_(targets, sources)].astype(np.float64)
    kinds = [np.array([element(t) for t in side if element(t)]) for side in (left, right)]
    weights[kinds[1][:, None] != kinds[0][None]] = 0.0
    near_left, near_right = bonds(left), bonds(right)
    mapping, confidence = np.full(len(targets), -1), 1.0
    while (total := weights.sum(axis=1, keepdims=True)).any():
        shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        target, source = np.unravel_index(np.argmax(shares), shares.shape)
        mapping[target] = source
        confidence *= shares[target, source]
        weights[np.ix_(near_right[target], near_left[source])] *= NEIGHBOUR_FACTOR
        weights[target], weights[:, source] = 0.0, 0.0
    return mapping.tolist(), float(confidence)


@pytest.fixture(scope="module")
def folder(data_dir):
    return data_dir / "rxnmapper"


@pytest.fixture(scope="module")
def attention_maps(folder):
    """Tokens and all maps of each reaction."""
    words = {word: i for i, word in enumerate((folder / "vocab.txt").read_text().splitlines())}
    model, found = load_model(folder), {}
    for reaction in PUBLISHED:
        tokens = TOKEN.findall(reaction)
        assert "".join(tokens) == reaction
        ids = [words["[CLS]"], *(words[token] for token in tokens), words["[SEP]"]]
        found[reaction] = tokens, ids, np.asarray(model.attention(ids))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("reaction", PUBLISHED)
def test_published_confidence_of_the_mapping_head(attention_maps, reaction):
    tokens, _, maps = attention_maps[reaction]
    mapping, confidence = atom_mapping(tokens, maps[LAYER, HEAD])
    assert abs(confidence - PUBLISHED[reaction]) <= 1e-6
    if reaction in MAPPED:
        assert mapping == MAPPED[reaction]


def test_no_other_head_of_the_layer_gives_the_published_numbers(attention_maps):
    for head in set(range(8)) - {HEAD}:
        for reaction, expected in PUBLISHED.items():
            tokens, _, maps = attention_maps[reaction]
            assert abs(atom_mapping(tokens, maps[LAYER, head])[1] - expected) > 1e-3


def test_shared_layers_are_counted_once(folder):
    model = load_model(folder)
    assert model.layers == 12
    assert set(model.stored_layer) == {0}
    assert len(model.heads) == 1
    tensors = open_checkpoint(folder).tensors
    assert sum(tensors[name].size for name in tensors) == 877_598
    # The file holds two tied tensors twice: what reads words in is what reads them out.
    copies = {
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    }
    for copy, first in copies.items():
        assert np.array_equal(tensors[copy], tensors[first])
    assert model.parameters == 877_598 - sum(tensors[copy].size for copy in copies) == 801_359


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_agrees_with_transformers(folder, attention_maps, dtype):
    torch, transformers = libraries()
    reference = transformers.AlbertForMaskedLM.from_pretrained(
        folder, attn_implementation="eager", dtype=getattr(torch, dtype)
    ).eval()
    _, ids, _ = attention_maps["C(C)O.BrC(C)>>CCOCC"]
    with torch.no_grad():
        expected = reference(torch.tensor([ids]), output_attentions=True)
    logits = expected.logits[0].numpy()
    with jax.enable_x64(dtype == "float64"):
        model = load_model(folder, dtype=dtype)
        found, maps = np.asarray(model.logits(ids)), np.asarray(model.attention(ids))
    assert np.abs(found - logits).max() <= TOLERANCE[dtype] * np.abs(logits).max()
    theirs = np.stack([each[0].numpy() for each in expected.attentions])
    assert np.abs(maps - theirs).max() <= TOLERANCE[dtype]
