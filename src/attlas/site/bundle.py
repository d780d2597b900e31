r"""JavaScript modules as one script, for a page that opens from disk.

A browser loads no module from `file://`, and a content policy by hashes allows no module that was
not in the page when it was written. Each module becomes a function of its own that hands out what
it exports, so that names of different modules never meet.
"""

import re
from collections.abc import Mapping
from importlib import resources

from attlas.core.errors import UserError

_IMPORT = re.compile(r"^import\s*\{([^}]*)\}\s*from\s*\"\./([a-z_]+)\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:(?:async )?function|const) (\w+))", re.MULTILINE)


def modules(folder: str) -> dict[str, str]:
    """The modules of one page.

    Returns:
        Sources by name, without `.js`.

    Examples:
        >>> "export function softmax" in modules("explorer")["numbers"]
        True
    """
    place = resources.files(f"attlas.site.{folder}")
    files = (each for each in place.iterdir() if each.name.endswith(".js"))
    return {file.name.removesuffix(".js"): file.read_text("utf-8") for file in files}


def bundle(sources: Mapping[str, str], *entries: str) -> str:
    r"""One script that runs modules after what they import.

    Imports are written `import { a, b } from "./name.js";`, exports `export function`,
    `export async function` or `export const`, at the beginning of a line.

    Args:
        *entries: those to run.

    Returns:
        The script, strict as modules are; the exports of one stand in a constant named `$` and its
        name.

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
    """Put a module after those that it imports."""
    if name in done:
        return
    if name in above or name not in sources:
        way = " -> ".join((*above, name))
        raise UserError(f"modules {way}: a module is missing or imports itself")
    source = sources[name]
    for _, other in _IMPORT.findall(source):
        _add(other, sources, done, (*above, name))
    exported = ", ".join(_EXPORT.findall(source))
    body = _IMPORT.sub(lambda found: f"const {{{found[1]}}} = ${found[2]};\n", source)
    body = _EXPORT.sub("", body)
    if re.search(r"^(?:import|export)\b", body, re.MULTILINE):
        raise UserError(f"module {name} has an import or export of another form: name each")
    done[name] = f"const ${name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"
