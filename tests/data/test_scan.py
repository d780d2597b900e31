"""Objects are found by scanning: each once, members of tuples too, in order."""

import sys

from attlas.data import sources


class Mark:
    """What is looked for."""


def test_objects_are_found_once_in_order_of_their_modules(tmp_path, monkeypatch):
    folder = tmp_path / "toy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "toy_marks", sys.modules[__name__])
    (folder / "b.py").write_text("from toy_marks import Mark\nx = Mark()\ny = 3\n")
    (folder / "a.py").write_text(
        "from toy_marks import Mark\nfrom toy_package.b import x\nboth = (Mark(), x)\n"
    )
    found = sources._scan("toy_package", Mark)
    a, b = (sys.modules[f"toy_package.{name}"] for name in "ab")
    assert len(found) == 2
    assert {id(item) for item in found} == {id(a.both[0]), id(b.x)}
