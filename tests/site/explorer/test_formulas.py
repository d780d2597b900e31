"""The explorer's JavaScript against the library: the same numbers, to twelve digits."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from explorer_vectors import EXPONENTS, FILE, selection_problem, vectors

from attlas.site.bundle import bundle, modules
from attlas.solvers._methods.certificate import certify
from attlas.solvers.attention_svm import attention_rows, attention_svm

ACCURACY = 1e-12
"""Of a number relative to the largest of its array: some thousand roundings. A case that takes
differences says how much they cost it."""

RUNNER = """
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const call = ({ module, function: name, arguments: values }) => $[module][name](...values);
const found = given.map(call);
const whole = (key, value) => {
  if (ArrayBuffer.isView(value)) return [...value];
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
};
console.log(JSON.stringify(found, whole));
"""


@pytest.fixture(scope="session")
def javascript(tmp_path_factory):
    """Call functions of the explorer's modules in Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("JavaScript: node is not installed")
    folder = tmp_path_factory.mktemp("javascript")

    def call(cases):
        names = sorted({each["module"] for each in cases})
        table = ", ".join(f"{name}: ${name}" for name in names)
        own = bundle(modules("explorer"), *names)
        script = f"{own}const $ = {{ {table} }};\n{RUNNER}"
        file, data = folder / "run.mjs", folder / "cases.json"
        file.write_text(script, encoding="utf-8")
        data.write_text(json.dumps(cases), encoding="utf-8")
        ran = subprocess.run(
            [node, file, data], capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return call


def is_array(value):
    """Whether a list is an array of numbers: of one shape throughout."""
    try:
        return np.asarray(value, float).ndim > 0
    except (ValueError, TypeError):
        return False


def assert_same(found, expected, where, accuracy=ACCURACY):
    """What an object or an array of the library holds, the other must hold."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert_same(found[name], value, f"{where}.{name}", accuracy)
    elif isinstance(expected, list) and not is_array(expected):
        assert len(found) == len(expected), where
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}[{k}]", accuracy)
    elif isinstance(expected, str):
        assert found == expected, where
    else:
        one, other = np.asarray(found, float), np.asarray(expected, float)
        assert one.shape == other.shape, where
        size = np.max(np.abs(other), initial=np.finfo(float).tiny)
        error = np.max(np.abs(one - other), initial=0.0) / size
        assert error <= accuracy, f"{where} differs by {error:.1e}: {found} for {expected}"


@pytest.mark.thorough
def test_the_stored_vectors_are_those_of_the_library():
    stored, now = json.loads(FILE.read_text(encoding="utf-8")), vectors()
    assert [(c["module"], c["function"]) for c in stored] == [
        (c["module"], c["function"]) for c in now
    ]
    for k, (old, new) in enumerate(zip(stored, now, strict=True)):
        assert_same(old, {key: new[key] for key in ("arguments", "expected")}, f"case {k}")


def test_javascript_computes_the_stored_vectors(javascript):
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    found = javascript(stored)
    for k, (each, value) in enumerate(zip(stored, found, strict=True)):
        where = f"{each['module']}.{each['function']}, case {k}"
        assert_same(value, each["expected"], where, each["accuracy"])


def svm_cases(problems):
    return [
        {
            "module": "attention_svm",
            "function": "attentionSvm",
            "arguments": [np.asarray(x).tolist() for x in (data.X, data.z, tokens)] + [p],
        }
        for data, tokens, p in problems
    ]


@pytest.mark.thorough
def test_the_attention_svm_is_certified_by_the_library(javascript):
    problems = [(*selection_problem(seed), p) for seed in range(8) for p in EXPONENTS]
    found = javascript(svm_cases(problems))
    for (data, tokens, p), answer in zip(problems, found, strict=True):
        peer = attention_svm(data.X, data.z, tokens, p)
        assert bool(peer.converged)
        assert answer["converged"]
        rows = attention_rows(*(np.asarray(each)[None] for each in (data.X, data.z, tokens)))
        w, l = (np.array([answer[name]]) for name in ("W", "dual"))
        sides = certify(rows, w, l, p)
        assert sides.gap[0] <= 1e-8
        assert answer["upper"] == pytest.approx(float(sides.upper[0]), rel=1e-12)
        # both are certified, so that the two minimisers are no further apart than they say
        apart = np.sum(np.abs(w[0] - np.ravel(peer.value)) ** p) ** (1 / p)
        assert apart <= answer["distance"] + float(peer.certificate["distance"]) + 1e-12


def test_tokens_that_nothing_separates_are_reported_as_such(javascript):
    case = {
        "module": "attention_svm",
        "function": "attentionSvm",
        "arguments": [
            [[[1, 0], [-1, 0.2]], [[-1, 0], [1, -0.2]]], [[1, 0.5], [1, 0.5]], [0, 0], 1.5,
        ],
    }  # fmt: skip
    (answer,) = javascript([case])
    assert not answer["converged"]
    assert answer["infeasible"]
    assert answer["residual"] <= 1e-8
