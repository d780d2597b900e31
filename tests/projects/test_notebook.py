"""Tagged cells, with what only a notebook understands left out."""

import json
from types import ModuleType

import pytest

from attlas.core.errors import UserError
from attlas.projects.notebook import run_cells, tagged_cells


def saved(path, cells):
    path.write_text(json.dumps({"nbformat": 4, "cells": cells}))
    return path


def code(source, *tags):
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source}


def test_cells_run_in_order_in_one_namespace(tmp_path):
    text = {"cell_type": "markdown", "metadata": {"tags": ["attlas"]}, "source": "no code"}
    cells = [code("x = 1\n", "attlas"), text, code(["!ls\n", "y = x + 1"], "claims"), code("x = 5")]
    path = saved(tmp_path / "n.ipynb", cells)
    assert [number for number, _ in tagged_cells(path)] == [1, 3]
    module = ModuleType("n")
    run_cells(path, module)
    assert (module.x, module.y) == (1, 2)


def test_an_error_names_its_cell(tmp_path):
    path = saved(tmp_path / "n.ipynb", [code("x = 1", "attlas"), code("\n1 / 0", "attlas")])
    with pytest.raises(ZeroDivisionError) as caught:
        run_cells(path, ModuleType("n"))
    last = caught.traceback[-1]
    assert (str(last.frame.code.raw.co_filename), last.lineno) == (f"{path}[cell 2]", 1)


def test_no_notebook_is_one_line(tmp_path):
    (tmp_path / "n.ipynb").write_text("no json")
    with pytest.raises(UserError, match="is no notebook of version 4"):
        tagged_cells(tmp_path / "n.ipynb")
    with pytest.raises(UserError, match="there is no file"):
        tagged_cells(tmp_path / "absent.ipynb")
