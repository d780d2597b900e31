"""Models trained by runs: folders below `models/` of a results folder, for `load_model`."""

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attlas._files.plain_file import Damaged, stems
from attlas.experiments.cell import Cell

if TYPE_CHECKING:  # the architectures, which only a run that trained a model needs
    from attlas.transformers.attlas_model import StoredForm

FOLDER = "models"
_KEY = re.compile(r"[0-9a-f]{12}-")


def write_models(
    root: Path,
    experiment: str,
    key: str,
    cell: Cell,
    models: "Mapping[str, StoredForm]",
    note: Callable[[str], None] = warnings.warn,
) -> tuple[Path, ...]:
    """Write the models of one cell: `<root>/models/<experiment>/<key>-<name>/`.

    Args:
        key: key of the cell's record; its first twelve digits begin the folder's name.
        cell: recorded in config.json.
        models: configuration and tensors by name; names have letters, digits, points and dashes.
        note: receives one line for each damaged model that is replaced.

    Raises:
        ValueError: if a name has other characters.
        UserError: if the folder cannot be written.
    """
    from attlas.transformers.attlas_model import save_model

    written = []
    for name, form in models.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", name):
            raise ValueError(f"model '{name}' of '{experiment}' is not named by letters and digits")
        notes = {"experiment": experiment, "cell": cell.label, "key": key, "name": name}
        place = root / FOLDER / experiment / f"{key[:12]}-{name}"
        written.append(save_model(place, form, notes, note))
    return tuple(written)


def trained_models(root: Path) -> tuple[Path, ...]:
    """The folders of all trained models in a results folder, sorted by experiment and key.

    Folders without config.json are unfinished and are skipped, as are unreadable ones.

    Examples:
        >>> trained_models(Path("/never/made"))
        ()
    """
    return tuple(
        folder
        for experiment in _folders(root / FOLDER)
        for folder in _folders(experiment)
        if (folder / "config.json").is_file()
    )


def model_title(folder: Path) -> str:
    """The name of a model: that of its folder, or of the experiment that trained it and the model.

    Examples:
        >>> model_title(Path("attlas-results/models/concentration/158c2150df7f-trained"))
        'concentration-trained'
        >>> model_title(Path("checkpoints/gpt2"))
        'gpt2'
    """
    experiment = folder.parent
    _, dash, name = folder.name.partition("-")
    made = experiment.parent.name == FOLDER and dash and _KEY.match(folder.name)
    return f"{experiment.name}-{name}" if made else folder.name


def _folders(place: Path) -> tuple[Path, ...]:
    try:
        return tuple(place / name for name in stems(place, ""))
    except Damaged:
        return ()  # a file in this place holds no models
