"""Modules become one script: each has its own names, in the order of the imports."""

import pytest

from attlas.core.errors import UserError
from attlas.site.bundle import bundle, modules

LINES = 400


def test_a_module_comes_after_what_it_imports_and_once():
    sources = {
        "a": 'import { x } from "./b.js";\nimport { y } from "./c.js";\nx(y);\n',
        "b": 'import { y } from "./c.js";\nexport function x() { return y; }\n',
        "c": "export const y = 1;\n",
    }
    script = bundle(sources, "a")
    places = [script.index(f"const ${name} = ") for name in "cba"]
    assert places == sorted(places)
    assert script.count("const $c = ") == 1
    assert "return { x };" in script
    assert "import" not in script
    assert "export" not in script


def test_functions_constants_and_what_waits_are_handed_out():
    source = "export async function a() {}\nexport function b() {}\nexport const c = 1;\n"
    assert "return { a, b, c };" in bundle({"m": source}, "m")


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ({"a": 'import { b } from "./b.js";\n'}, "a -> b"),
        (
            {"a": 'import { b } from "./b.js";\n', "b": 'import { a } from "./a.js";\n'},
            "a -> b -> a",
        ),
        ({"a": 'import b from "./b.js";\n'}, "another form"),
        ({"a": "export default 1;\n"}, "another form"),
    ],
)
def test_what_cannot_be_bundled_is_refused(sources, told):
    with pytest.raises(UserError, match=told):
        bundle(sources, "a")


@pytest.mark.parametrize("folder", ["explorer", "atlas_page"])
def test_the_modules_are_short_and_end_no_script_element(folder):
    for name, source in modules(folder).items():
        assert len(source.splitlines()) <= LINES, name
        assert "</script" not in source.lower()
        assert source.startswith("/**"), f"{name} does not say what it is"
