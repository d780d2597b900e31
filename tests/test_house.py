"""The house rules that no linter knows, read off the tree."""

import ast
import doctest
import importlib
import pkgutil
import re
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import attlas
from attlas.core.errors import extras
from attlas.projects.bibliography import all_references

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "attlas"
PAPERS = ROOT / "papers"
OF_PAPERS = [p for p in sorted(PAPERS.rglob("*.py")) if "tests" not in p.parts]
LIBRARIES = [p for p in OF_PAPERS if "library" in p.parts]
FILES = [*sorted(SOURCE.rglob("*.py")), *OF_PAPERS]
TESTS = [*sorted((ROOT / "tests").rglob("*.py")), *sorted(PAPERS.glob("*/tests/**/*.py"))]
CHECKED = [*FILES, *TESTS, ROOT / "conftest.py"]

FILE_LINES = 400
FUNCTION_LINES = 60
FOLDER_LEVELS = 3
DOORS = ("experiments/panels", "transformers", "audit", "torch")
EMPTY_NAMES = {"util", "utils", "misc", "helper", "helpers", "common"}
PRIVATE_JAX = ("jax._src", "jax.core", "jax.interpreters")
EXTRAS = {
    "attlas.torch.": "torch",
    "attlas.capture.": "torch",
    "attlas.audit.captured.": "torch",
    "attlas.server.server": "mcp",
}
"""Modules that need a package which not everybody installs."""
UNSAFE = {("pickle", "load"), ("pickle", "loads"), ("torch", "load")}


@cache
def trees() -> dict[Path, ast.Module]:
    """Every file, parsed by the first test that asks and not when tests are collected."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in CHECKED}


@cache
def nodes() -> dict[Path, list[ast.AST]]:
    """The nodes of every file, walked through once for all tests."""
    return {path: [*ast.walk(tree)] for path, tree in trees().items()}


def teardown_module() -> None:
    """The trees of all files take 425 MB."""
    nodes.cache_clear()
    trees.cache_clear()


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> set[str]:
    """Dotted names a module imports, from-imports in full."""
    found = set()
    for node in nodes()[path]:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def attributes(path: Path) -> set[str]:
    """Dotted attribute chains such as `jax.core.Jaxpr` that a module uses."""
    return {
        ast.unparse(node)
        for node in nodes()[path]
        if isinstance(node, ast.Attribute) and begins_with_jax(node)
    }


def begins_with_jax(node: ast.expr) -> bool:
    """Whether a chain of attributes begins with the name of the package."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "jax"


def test_files_functions_and_folders_stay_small():
    long_files = [name(p) for p in CHECKED if len(p.read_text().splitlines()) > FILE_LINES]
    levels = {p: p.relative_to(PAPERS if PAPERS in p.parents else SOURCE).parts for p in FILES}
    deep = [
        name(p) for p, parts in levels.items() if len(parts) > FOLDER_LEVELS + ("library" in parts)
    ]
    long_functions = [
        f"{name(path)}:{node.name}"
        for path, inside in nodes().items()
        for node in inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES
    ]
    assert (long_files, deep, long_functions) == ([], [], [])


def test_names_are_meaningful():
    assert [name(p) for p in FILES if p.stem in EMPTY_NAMES or p.parent.name in EMPTY_NAMES] == []


def test_init_files_hold_a_docstring_only_but_for_the_doors():
    doors = [SOURCE / "__init__.py", *(SOURCE / name / "__init__.py" for name in DOORS)]
    inits = [p for p in FILES if p.name == "__init__.py" and p not in doors]
    assert [name(p) for p in inits if len(trees()[p].body) != 1] == []
    assert [name(p) for p in inits if not ast.get_docstring(trees()[p])] == []


def test_annotations_are_evaluated():
    # Strings instead of types would switch off the shape checks without a word.
    assert [name(p) for p in CHECKED if "__future__.annotations" in imported(p)] == []


def test_only_the_public_interface_of_jax():
    found = [
        f"{name(path)}: {used}"
        for path in nodes()
        for used in imported(path) | attributes(path)
        if any(used == private or used.startswith(f"{private}.") for private in PRIVATE_JAX)
    ]
    assert found == []


def test_nothing_is_unpickled():
    files = sorted((ROOT / "benchmarks").rglob("*.py"))
    benchmarks = [
        (path, [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]) for path in files
    ]
    found = [
        f"{name(path)}:{node.lineno}"
        for path, inside in (*nodes().items(), *benchmarks)
        for node in inside
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, node.func.attr) in UNSAFE
    ]
    assert found == []


def test_no_file_of_tests_needs_an_extra_to_be_collected():
    """Pytest imports every file: what not everybody installs is asked for by `importorskip`."""
    needing = []
    for path in TESTS:
        asked: set[str] = set()
        for statement in trees()[path].body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and "importorskip" in ast.unparse(node.func):
                    asked |= {str(ast.literal_eval(node.args[0])).partition(".")[0]}
            if isinstance(statement, ast.Import | ast.ImportFrom):
                roots = {alias.name.partition(".")[0] for alias in statement.names}
                if isinstance(statement, ast.ImportFrom):
                    roots = {(statement.module or "").partition(".")[0]}
                if roots & {"torch", "transformers", "peft", "accelerate"} - asked:
                    needing.append(f"{name(path)}:{statement.lineno}")
    assert needing == []


def test_no_global_precision_switch():
    """Only the conftest switches precision by configuration; the library follows its input."""
    found = [name(p) for p in FILES if "jax_enable_x64" in p.read_text(encoding="utf-8")]
    assert found == []


def test_every_test_asserts():
    """A test has an assertion, a `raises`, or calls a function whose name says `assert`."""
    silent = [
        f"{name(path)}:{node.name}"
        for path, inside in nodes().items()
        if path.name.startswith("test_")
        for node in inside
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if not any(isinstance(part, ast.Assert) for part in ast.walk(node))
        and not re.search(r"\bassert|raises\(", ast.unparse(node))
    ]
    assert silent == []


def test_skips_have_reasons():
    silent = [
        f"{name(path)}:{node.lineno}"
        for path, inside in nodes().items()
        for node in inside
        if isinstance(node, ast.Call)
        and not node.args
        and not node.keywords
        and ast.unparse(node.func) in ("pytest.skip", "pytest.mark.skip", "pytest.mark.xfail")
    ]
    assert silent == []


def test_every_example_of_a_docstring_is_executed():
    """The doctest finder sees as many examples as the source holds."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    missed = []
    names = [info.name for info in pkgutil.walk_packages(attlas.__path__, "attlas.")]
    names += [".".join(p.relative_to(PAPERS).with_suffix("").parts) for p in LIBRARIES]
    for dotted in names:
        needed = next(
            (package for begin, package in EXTRAS.items() if dotted.startswith(begin)), "os"
        )
        if dotted.endswith("__main__") or find_spec(needed) is None:
            continue
        module = importlib.import_module(dotted.removesuffix(".__init__"))
        found = sum(len(test.examples) for test in finder.find(module, dotted))
        written = Path(str(module.__file__)).read_text(encoding="utf-8")
        shown = len(re.findall(r"^\s+>>> ", written, re.MULTILINE))
        if found < shown:
            missed.append(f"{dotted}: {found} of {shown}")
    assert missed == []


def test_cited_keys_are_in_the_bibliography():
    cited = {
        key
        for path in FILES
        for key in re.findall(
            r"\b[a-z]{3,}(?:19|20)\d\d[a-z]{3,}\b", path.read_text(encoding="utf-8")
        )
    }
    assert cited - all_references().keys() == set()


def test_the_lock_names_no_host_and_covers_the_project():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "requirements").glob("*.txt")]
    every = "\n".join(texts)
    assert "://" not in every
    assert "--" not in every.replace("--hash=sha256:", "")
    versions = set(re.findall(r"^([a-z0-9-]+)==(\S+)", every, re.MULTILINE))
    locked = {name for name, _ in versions}
    assert len(versions) == len(locked)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *groups["test"], *groups["check"]]
    named = {re.split(r"[\[<>=~ ]", each)[0] for each in wanted} | extras()["all"]
    assert named - locked == set()


def markdown_pages() -> list[Path]:
    """Every Markdown file but those that `make docs` writes."""
    generated = {"_build", "api", "papers", "errata.md"}
    docs = sorted((ROOT / "docs").rglob("*.md"))
    written = [page for page in docs if page.relative_to(ROOT / "docs").parts[0] not in generated]
    folders = ("papers", "src", "tests", "benchmarks")
    elsewhere = [page for folder in folders for page in sorted((ROOT / folder).rglob("*.md"))]
    return [*ROOT.glob("*.md"), *written, *elsewhere]


def test_links_of_the_pages_lead_somewhere():
    """As a code host shows them; for the site `docs/extensions/claims.py` replaces some."""
    dead = [
        (name(page), link)
        for page in markdown_pages()
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not page.parent.joinpath(link).exists()
    ]
    assert dead == []


def test_norms_in_tables_keep_their_bars():
    r"""In a table `\|` is one bar, also within a formula; `\lVert` and `\rVert` are two."""
    single = [
        (name(page), formula)
        for page in markdown_pages()
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
        for formula in re.findall(r"(?<!\\)\$[^$]*\$", line)
        if r"\|" in formula
    ]
    assert single == []


def test_make_targets_of_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "CONTRIBUTING.md")]
    named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", "\n".join(pages), re.MULTILINE))
    assert {target for pair in named for target in pair if target} - targets == set()


def mirror(path: Path) -> Path:
    """Where the test of a library file stands."""
    if PAPERS in path.parents:
        return PAPERS / path.relative_to(PAPERS).parts[0] / "tests" / f"test_{path.name}"
    inside = path.relative_to(SOURCE)
    # a test folder named torch would hide the library
    folders = ["torch_bridge" if part == "torch" else part for part in inside.parts[:-1]]
    return ROOT.joinpath("tests", *folders, f"test_{inside.name}")


ONE_TEST = ("attlas.cli.", "attlas.transformers.architectures.")


def test_every_library_file_is_tested():
    """A file has a test of its name in the mirrored folder, or a test imports from it.

    Claims, experiments, commands and architectures are run by the one test of their kind.
    """
    used = {found for path in TESTS for found in imported(path)}
    untested = []
    for path in [*(p for p in FILES if SOURCE in p.parents), *LIBRARIES]:
        root = PAPERS if PAPERS in path.parents else SOURCE.parent
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if path.name == "__init__.py" or module.startswith(ONE_TEST):
            continue
        if not mirror(path).exists() and not any(
            f"{each}.".startswith(f"{module}.") for each in used
        ):
            untested.append(name(path))
    assert untested == []


WRITERS = {
    "_files/appended_lines.py",
    "_files/file_changes.py",
    "_files/live_mark.py",
    "_files/new_files.py",
    "_jax/held_memory.py",  # resets a counter of Linux in /proc
    "cli/doctor.py",  # a file without a name, to try whether a folder can be written
    "cli/main.py",  # /dev/null, where nobody reads the output any more
    "cli/session.py",  # as cli/doctor.py
    "data/imdb.py",  # into the room of a download
    "data/sources.py",  # the room of a download, which is renamed when it is verified
    "experiments/packed.py",  # an archive in memory
    "experiments/text_file.py",  # pipes and devices
    "server/child.py",  # a temporary folder for one call
    "server/task.py",  # in the folder of its call
    "server/tasks.py",  # as server/task.py
}
"""The only modules that change files: they are in the crash tests, or why not is said here."""
CHANGES = re.compile(
    "hardlink_to|mk(dir|dtemp|stemp)|makedirs|memmap|NamedTemporaryFile|rm(dir|tree)|savetxt"
    "|savez(_compressed)?|symlink_to|Temporary(Directory|File)|tofile|touch|truncate|unlink"
    "|write_(bytes|text)"
)
OF_THE_SYSTEM = re.compile(
    r"os\.(link|remove|renames?|replace|symlink)|shutil\.(copy(2|file|tree)?|move)"
)


def changes_files(call: ast.Call) -> bool:
    """Whether a call changes a file system, by its name, its module, or the mode of `open`."""
    called = ast.unparse(call.func)
    last = called.rpartition(".")[2]
    if CHANGES.fullmatch(last) or OF_THE_SYSTEM.fullmatch(called):
        return True
    if called == "os.open":
        return any(flag in ast.unparse(call) for flag in ("O_WRONLY", "O_RDWR"))
    texts = [n.value for n in (*call.args, *(k.value for k in call.keywords))
             if isinstance(n, ast.Constant) and isinstance(n.value, str)]  # fmt: skip
    return last in ("open", "fdopen", "ZipFile", "TarFile") and any(
        re.fullmatch("[rwxabt]?[+bt]*", text) and re.search("[wxa+]", text) for text in texts
    )


def test_only_some_modules_change_files():
    writers = {
        path
        for path in FILES
        for node in nodes()[path]
        if isinstance(node, ast.Call) and changes_files(node)
    }
    assert writers == {SOURCE / name for name in WRITERS}


def test_calls_that_change_files_are_recognised():
    changing = (
        "path.write_text('')",
        "open(path, 'w')",
        "path.open(mode='ab')",
        "lzma.open(path, 'wt')",
        "np.savez(path)",
        "os.replace(a, b)",
        "shutil.copy(a, b)",
        "os.open(path, os.O_RDWR)",
    )
    others = ("open(path)", "path.open('rb')", "text.replace('a', 'b')", "data.rename(a='b')")
    found = [changes_files(node) for text in (*changing, *others)
             for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]  # fmt: skip
    assert found == [True] * len(changing) + [False] * len(others)
