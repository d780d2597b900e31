"""Columns of Parquet as pyarrow writes it in its ways, and files that would unpack to gigabytes."""

import importlib.util
import io
import re

import numpy as np
import pytest
from cost import cost_of

from attlas._files.budget import PREDICTIONS
from attlas._files.plain_file import Damaged
from attlas.certificates.parquet_file import parquet_columns
from attlas.certificates.prediction_file import read_predictions, read_table
from attlas.core.errors import UserError


def test_without_pyarrow_the_line_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r"needs pyarrow: pip install '\.\[parquet\]' in a clone of attlas; or"
    ):
        read_predictions(tmp_path / "a.parquet")


def written(columns, **options):
    arrow = pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"row_group_size": 2},
        {"use_dictionary": False, "column_encoding": {"id": "DELTA_LENGTH_BYTE_ARRAY"}},
    ],
)
def test_columns_come_back(options):
    columns = {"id": ["a", "é", None, "a"], "p": [0.5, None, 0.1, 1.0], "n": [3, 1, 4, 1]}
    columns |= {"right": [True, False, True, None], "answers": [["a"], ["b"], [], None]}
    read = parquet_columns(written(columns, **options))
    assert {name: list(values) for name, values in read.items()} == {
        name: columns[name] for name in ("id", "p", "n", "right")
    }


def test_categories_are_texts(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    label = arrow.array(["cat", "dog", "cat"]).dictionary_encode()
    (tmp_path / "a.parquet").write_bytes(written({"label": label, "prediction": ["cat"] * 3}))
    assert read_predictions(tmp_path / "a.parquet").losses.tolist() == [0, 1, 0]


def test_a_row_without_a_label_is_no_right_answer(tmp_path):
    file = tmp_path / "a.parquet"
    file.write_bytes(written({"label": ["a", None], "prediction": ["a", None]}))
    with pytest.raises(UserError, match="rows without a 'label'"):
        read_predictions(file)
    file.write_bytes(written({"label": [0.0, np.nan], "prediction": [0.0, np.nan]}))
    with pytest.raises(UserError, match="rows without a 'label'"):
        read_predictions(file)


def inflated():
    """Five texts of 4 MB whose pages say that they unpack to 134 MB each."""
    content = written(
        {name: ["a" * 2**22] for name in "abcde"}, compression="zstd", use_dictionary=False
    )
    header = rb"\x15\x00\x15[\x80-\xff]{3}[\x01-\x7f]"  # a page of values, and its size
    larger, number = re.subn(header, b"\x15\x00\x15\xfe\xff\xff\x7f", content)
    assert number == 5
    return larger


def truncated():
    content = written({"a": ["x" * 1000] * 100}, use_dictionary=False, compression="none")
    return content[:4] + content[40_000:]


REFUSED = {
    "half a gigabyte in pages": (inflated, f"more than {PREDICTIONS.bytes} bytes"),
    "too many rows": (
        lambda: written({"loss": np.zeros(PREDICTIONS.entries + 1)}),
        f"more than {PREDICTIONS.entries} rows",
    ),
    "too many columns": (
        lambda: written({str(k): np.zeros(2**20) for k in range(65)}, compression="zstd"),
        "unpacks to more than",
    ),
    "texts as differences": (
        lambda: written(
            {"a": ["abc"]}, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"}
        ),
        "without DELTA_BYTE_ARRAY",
    ),
    "columns of one name": (
        lambda: written(
            pytest.importorskip("pyarrow").Table.from_arrays([[1], [2]], names=["a", "a"])
        ),
        "two columns of one name",
    ),
    "a part that is missing": (truncated, "truncated"),
    "no Parquet": (lambda: b"PAR1" * 9, "is no Parquet file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_costs_too_much_is_refused_before_it_is_unpacked(name):
    make, said = REFUSED[name]
    pytest.importorskip("pyarrow.parquet")
    content = make()

    def refused():
        with pytest.raises(Damaged) as caught:
            parquet_columns(content)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)

    cost = cost_of(refused)
    assert cost.seconds < 2
    assert cost.megabytes < 200


def test_a_long_text_of_many_rows_is_held_once(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    rows = arrow.array(np.zeros(2**20, np.int32))
    long = arrow.DictionaryArray.from_arrays(rows, arrow.array(["a" * 2**20]))
    file = tmp_path / "a.parquet"
    file.write_bytes(written({"label": long}))
    columns = []
    assert cost_of(lambda: columns.append(read_table(file))).megabytes < 200
    assert len(columns[0]["label"]) == 2**20


def test_spoilt_bytes_are_read_or_refused_in_one_line():
    good = written({"id": ["a", "b"] * 20, "p": [0.5, 0.25] * 20})
    draw = np.random.default_rng(0)
    refusals = []
    for _ in range(300):
        content = bytearray(good)
        for place in draw.integers(len(good), size=draw.integers(1, 4)):
            content[place] = draw.integers(256)
        try:
            parquet_columns(bytes(content))
        except Damaged as damage:
            refusals.append(str(damage))
    assert len(refusals) > 50
    assert all(map(str.isprintable, refusals))
