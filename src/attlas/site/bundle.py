r"""JavaScript modules as one script, for a page that opens from disk.

A browser loads no module from `file://`, and a content policy with hashes allows no module outside
the page. Each module becomes a function that returns its exports, so that names of different
modules do not clash.
"""

import re
from collections.abc import Mapping
from importlib import resources

from attlas.core.errors import UserError

_IMPORT = re.compile(r"^import\s*\{([^}]*)\}\s*from\s*\"\./([a-z_]+)\.js\";\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function|const) (\w+))", re.MULTILINE)


def modules(folder: str) -> dict[str, str]:
    """The sources of a page's modules, by name without `.js`.

    Examples:
        >>> "export function softmax" in modules("explorer")["numbers"]
        True
    """
    place = resources.files(f"attlas.site.{folder}")
    files = (path for path in place.iterdir() if path.name.endswith(".js"))
    return {file.name.removesuffix(".js"): file.read_text("utf-8") for file in files}


def bundle(sources: Mapping[str, str], *entries: str) -> str:
    r"""One strict script that runs the modules `entries` after their imports.

    Imports are written `import { a, b } from "./name.js";`, exports `export function`,
    `export async function` or `export const`, at the beginning of a line. The exports of a module
    `name` become the constant `$name`. Comments that fill lines of their own are left out.

    A `UserError` names a module that is missing, that imports itself through others, or that has
    an import or export of another form.

    Examples:
        >>> pair = {"one": "export const a = 1;\n", "two": 'import { a } from "./one.js";\n'}
        >>> print(bundle(pair, "two"))
        "use strict";
        const $one = (() => {
        const a = 1;
        return { a };
        })();
        const $two = (() => {
        const { a } = $one;
        return {  };
        })();
        <BLANKLINE>
    """
    done: dict[str, str] = {}
    for entry in entries:
        _add(entry, sources, done, ())
    return '"use strict";\n' + "".join(done.values())


def _add(name: str, sources: Mapping[str, str], done: dict[str, str], above: tuple) -> None:
    """Append a module after its imports."""
    if name in done:
        return
    if name in above or name not in sources:
        way = " -> ".join((*above, name))
        raise UserError(f"modules {way}: a module is missing or imports itself")
    source = _COMMENT.sub("", sources[name])
    for _, imported in _IMPORT.findall(source):
        _add(imported, sources, done, (*above, name))
    exported = ", ".join(_EXPORT.findall(source))
    body = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = ${match[2]};\n", source)
    body = _EXPORT.sub("", body)
    if re.search(r"^(?:import|export)\b", body, re.MULTILINE):
        raise UserError(f"module {name} has an import or export of another form: list the names")
    done[name] = f"const ${name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"
