"""Bad input is one clear line and leaves nothing half-written, in Python and at the terminal."""

import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arrays_of import arrays_of

from attlas._jax.processes import checker_variables
from attlas.cli.main import main
from attlas.core.errors import UserError
from attlas.data import token_selection
from attlas.data.mnist import MNIST, load_mnist
from attlas.data.sources import State, verify
from attlas.data.token_selection import TokenSelection, make_token_selection, validate
from attlas.experiments.load import load
from attlas.experiments.store import Store
from attlas.experiments.text_file import probe_text_file, write_text_file
from attlas.experiments.witness import write_witness
from attlas.measures.attention.direction import direction_divergence
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import potential
from julistiono2024optimizing.library.solvers.regularisation_path import regularisation_path
from julistiono2024optimizing.library.token_selection.factored import train_factored
from julistiono2024optimizing.library.token_selection.flow import mirror_flow
from julistiono2024optimizing.library.token_selection.training import (
    train_selection,
    train_selection_ensemble,
)

LEMMA = "julistiono2024optimizing/lemma-12"
KEY = jax.random.key(0)
DATA = make_token_selection(KEY, n=2, T=3, d=4)
ZERO = jnp.zeros((4, 4))


def refused(act) -> str:
    """The one line that an act is refused with."""
    with pytest.raises(UserError) as caught:
        act()
    line = str(caught.value)
    assert line
    assert "\n" not in line
    return line


def altered(**fields) -> TokenSelection:
    data = DATA
    for name, value in fields.items():
        data = eqx.tree_at(lambda d, name=name: getattr(d, name), data, value)
    return data


BAD_DATA = {
    "X[0, 0, 0] = nan": altered(X=DATA.X.at[0, 0, 0].set(jnp.nan)),
    "z[1, 3] = inf": altered(z=DATA.z.at[1, 3].set(jnp.inf)),
    "label y[1] = 0.5": altered(y=jnp.array([1.0, 0.5])),
    "T = 1 token": altered(X=DATA.X[:, :1]),
    "no sample (n = 0)": altered(X=DATA.X[:0], y=DATA.y[:0], z=DATA.z[:0]),
    "z has shape (2, 3)": altered(z=DATA.z[:, :3]),
}
STEPS = {"learning_rate": 0.1, "steps": 2}
USERS = {
    "train_selection": lambda data: train_selection(data, ZERO, p=2.0, **STEPS),
    "mirror_flow": lambda data: mirror_flow(data, ZERO, p=2.0, steps=2),
    "train_factored": lambda data: train_factored(data, ZERO, ZERO, **STEPS),
    "regularisation_path": lambda data: regularisation_path(data, [1.0], 2.0, key=KEY),
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("said", BAD_DATA)
def test_data_that_cannot_be_used_are_refused_by_all_who_take_them(user, said):
    assert said in refused(lambda: USERS[user](BAD_DATA[said]))


def stacked(*problems: TokenSelection) -> TokenSelection:
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *problems)


def ensemble(data: TokenSelection, W0=jnp.zeros((2, 4, 4)), **settings):  # noqa: B008
    return train_selection_ensemble(data, W0, **{"p": 2.0, **STEPS, **settings})


def test_an_ensemble_names_its_bad_problem():
    two = stacked(DATA, BAD_DATA["label y[1] = 0.5"])
    assert "label y[1, 1] = 0.5" in refused(lambda: ensemble(two))
    two = stacked(DATA, BAD_DATA["X[0, 0, 0] = nan"])
    assert "X[1, 0, 0, 0] = nan" in refused(lambda: ensemble(two))
    assert "X has shape (2, 3, 4)" in refused(lambda: validate(DATA, ensemble=True))
    good = stacked(DATA, DATA)
    assert "W0 has shape (2, 3, 3): give (2, 4, 4)" in refused(
        lambda: ensemble(good, jnp.zeros((2, 3, 3)))
    )
    assert "chunk = 0" in refused(lambda: ensemble(good, chunk=0))
    assert "p = 1.0" in refused(lambda: ensemble(good, p=1.0))


def test_shapes_are_tested_inside_a_transformation_too():
    assert "z has shape" in refused(
        lambda: jax.vmap(validate)(stacked(*2 * [BAD_DATA["z has shape (2, 3)"]]))
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"p": float("nan")}, "p = nan"),
        ({"learning_rate": -0.1}, "learning_rate = -0.1"),
        ({"learning_rate": float("nan")}, "learning_rate = nan"),
        ({"eps": -1.0}, "eps = -1.0"),
    ],
)
def test_settings_of_training_are_refused(settings, said):
    given = {"p": 2.0, **STEPS, **settings}
    assert said in refused(lambda: train_selection(DATA, ZERO, **given))


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: mirror_flow(DATA, ZERO, p=1.0, steps=2), "p = 1.0 has no mirror map"),
        (lambda: mirror_flow(DATA, ZERO[:3, :3], p=2.0, steps=2), "W0 has shape (3, 3)"),
        (lambda: mirror_flow(DATA, ZERO, p=2.0, steps=2, step=0.0), "step = 0.0"),
        (lambda: train_factored(DATA, ZERO[:3], ZERO[:3], **STEPS), "K0 has shape (3, 4)"),
        (lambda: direction_divergence(ZERO + 1, ZERO + 2, 1.0), "p = 1.0 has no mirror map"),
        (lambda: potential(ZERO, 0.5), "p = 0.5 has no mirror map"),
        (lambda: entrywise_norm(ZERO, 0.5), "p = 0.5 gives no norm"),
        (lambda: entrywise_norm(ZERO, float("nan")), "p = nan gives no norm"),
        (lambda: load("joint", scale="huge"), "unknown scale 'huge': choose smoke"),
        (lambda: load("all"), "'all' stands for"),
        (lambda: load("jiont"), "did you mean joint"),
        (lambda: load("joint", settings={"pp": 2.0}), "joint has no setting 'pp': did you mean p"),
    ],
)
def test_options_of_the_library_are_refused(act, said):
    assert said in refused(act)


@pytest.mark.parametrize("kind", ["token", "separable", "infeasible", "support"])
@pytest.mark.parametrize("sizes", [{"n": 0}, {"n": -2}, {"T": 1}, {"T": 0}, {"d": 0}])
def test_generators_refuse_sizes_that_leave_nothing(kind, sizes):
    ((name, value),) = sizes.items()
    make = getattr(token_selection, f"make_{kind}_selection")
    assert f"{name} = {value}" in refused(lambda: make(KEY, **sizes))


def test_a_separable_selection_needs_room_and_a_margin():
    make = token_selection.make_separable_selection
    assert "d = 1 " in refused(lambda: make(KEY, d=1))
    assert "margin = 0.0 " in refused(lambda: make(KEY, margin=0.0))


@pytest.fixture
def attlas(capsys, monkeypatch, tmp_path):
    """Run the command line here: the one line it refuses with; the folder stays as it was."""
    # The commands set variables for the processes they start; here they are taken back.
    for name, value in checker_variables(2).items():
        monkeypatch.setenv(name, value)
    for name in ("ATTLAS_RESULTS", "ATTLAS_DATA"):
        monkeypatch.delenv(name, raising=False)
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.chdir(room)

    def run(*arguments: str | Path) -> str:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        err = capsys.readouterr().err
        assert left.value.code == 2
        assert err.startswith("attlas: ")
        assert err.count("\n") == 1
        assert list(room.iterdir()) == []
        return err

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", ""], "no claim or paper ''"),
        (["challenge", "lemma-13"], "did you mean lemma-13-"),
        (["run"], "Missing argument"),
        (["run", "jiont"], "did you mean joint"),
        (["run", ""], "unknown experiment ''"),
        (["run", "joint", "--workers", "-1"], "--workers"),
        (["run", "direction", "--set", "strat=zero"], "did you mean start (gaussian, zero)"),
        (["run", "direction", "--set", "start=zeros"], "did you mean zero? It takes gaussian"),
        (["run", "direction", "--set", "members=2.5"], "it takes whole numbers, such as 4"),
        (["run", "direction", "--set", "members"], "write NAME=VALUE"),
        (["run", "direction", "--set", "members=0"], "members = 0"),
        (["check", "--seed", "-1"], "equal to 0. See"),
        (["challenge", LEMMA, "--seconds", "nan"], "--seconds"),
        (["check", LEMMA, "--json", ""], "--json . is not a file"),
        (["check", LEMMA, "--latex", "none/table.tex"], "--latex none/table.tex is not a file"),
        (["report", "--out", ""], "--out . is not a file in an existing folder"),
        (["report", "--out", "", "--single"], "--out . is not a file in an existing folder"),
        (["report", "--out", "atlas"], "name a file .html, or add --single"),
        (["data", "verify", "mnits"], "did you mean mnist"),
        (["data", "fetch", "pt_en"], "no source to fetch from"),
        (["data", "verify", "--data-dir", os.devnull], "is not a folder"),
    ],
)
def test_the_command_line_refuses_in_one_line(attlas, arguments, said):
    assert said in attlas(*arguments)


@pytest.mark.parametrize(("option", "said"), [("--scale", "huge"), ("--on", "dask://node7")])
def test_a_run_is_refused_before_it_says_anything(capsys, tmp_path, option, said):
    with pytest.raises(SystemExit) as left:
        main(["--results", str(tmp_path), "run", "joint", option, said])
    shown = capsys.readouterr()
    assert (left.value.code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert said in shown.err


def test_a_witness_of_another_version_of_a_claim_is_refused(attlas, tmp_path):
    store = Store(tmp_path / "results")
    other = write_witness(store, LEMMA, {"nothing": np.zeros(2)})
    assert f"does not fit the current form of '{LEMMA}'" in attlas("challenge", "--replay", other)
    gone = write_witness(store, "julistiono2024optimizing/lemma-1000", {"x": np.zeros(2)})
    assert "no claim or paper" in attlas("challenge", "--replay", gone)
    packed = arrays_of(other)
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 1
    packed.write_bytes(content)
    assert "altered" in attlas("challenge", "--replay", other)


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_at_the_command_line(attlas, monkeypatch, tmp_path):
    # What a full disk does: names are made, bytes are not taken.
    monkeypatch.setattr(os, "fsync", full)
    results = tmp_path / "results"
    for command in (["check", LEMMA], ["run", "joint", "--scale", "smoke"]):
        assert "No space left on device" in attlas("--results", results, *command)
    assert [path for path in results.rglob("*") if path.is_file()] == []


def test_a_full_disk_leaves_a_named_file_as_it_was(monkeypatch, tmp_path):
    file = tmp_path / "atlas.html"
    write_text_file(file, "old", "--out")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        line = refused(lambda: write_text_file(file, "new", "--out"))
    assert "No space left on device" in line
    assert "--out" in line
    assert [path.name for path in tmp_path.iterdir()] == ["atlas.html"]
    assert file.read_text() == "old"
    link = tmp_path / "link"
    link.symlink_to(file)
    write_text_file(link, "new", "--out")
    assert (link.is_symlink(), file.read_text()) == (True, "new")
    assert "--json" in refused(lambda: probe_text_file(tmp_path, "--json"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_an_output_that_takes_nothing_is_one_line():
    program = "from attlas.cli.main import main; main(['--help'])"
    with Path("/dev/full").open("w") as nowhere:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=nowhere, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.startswith("attlas: No space left on device")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_is_no_error():
    program = "from attlas.cli.main import main; main(['data', 'list'])"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert done.stderr == ""


def idx(array: np.ndarray) -> bytes:
    sizes = np.array(array.shape, ">u4").tobytes()
    return gzip.compress(b"\0\0\x08" + bytes([array.ndim]) + sizes + array.tobytes())


def test_a_data_folder_without_files_or_with_others_is_refused(attlas, tmp_path):
    folder = tmp_path / "data"
    (folder / "mnist").mkdir(parents=True)
    assert "holds none of mnist" in attlas("data", "verify", "mnist", "--data-dir", folder)
    assert "lacks train-images" in refused(lambda: load_mnist(folder))
    # Files of the right form with other digits in them: only the checksum differs.
    for file in MNIST.files:
        shape = (3, 28, 28) if "images" in file else (3,)
        (folder / "mnist" / file).write_bytes(idx(np.ones(shape, np.uint8)))
    line = attlas("data", "verify", "mnist", "--data-dir", folder)
    assert "wrong checksum of train images, train labels, test images" in line
    assert refused(lambda: load_mnist(folder)) in line
    (folder / "mnist" / MNIST.files[0]).unlink()
    assert f"lacks {MNIST.files[0]}" in attlas("data", "verify", "--data-dir", folder)


def test_one_altered_label_of_the_real_set_is_found(data_dir, tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for file in MNIST.files:
        (folder / file).symlink_to(data_dir / "mnist" / file)
    labels = folder / MNIST.files[3]
    content = bytearray(gzip.decompress(labels.read_bytes()))
    content[-1] = (content[-1] + 1) % 10
    labels.unlink()
    labels.write_bytes(gzip.compress(bytes(content), compresslevel=1))
    (found,) = verify(tmp_path, ("mnist",))
    assert found.state is State.DAMAGED
    assert "wrong checksum of test labels:" in found.detail


def test_a_set_that_comes_with_a_dependency_needs_no_folder(tmp_path):
    (found,) = verify(tmp_path / "nowhere", ("digits",))
    assert found.state is State.VERIFIED
