"""Options and arguments that several commands share, and how their text is read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.errors import TinykernelError
from tinykernel.files import refuse_inputs, refuse_occupied

if TYPE_CHECKING:
    from tinykernel.data.load import Rows
    from tinykernel.data.recordings import Windows
    from tinykernel.data.selection import Selection
    from tinykernel.measure.limits import Limits
    from tinykernel.model import IntegerModel

MODEL_SUFFIXES = (".tkm", ".pkl")
#: Of scikit-learn and NumPy.
LARGEST_SEED = 2**32 - 1


def _budget(text: str | Limits) -> Limits:
    from tinykernel.measure.limits import parse_limits

    try:
        return parse_limits(text)
    except TinykernelError as error:
        raise typer.BadParameter(str(error)) from None


def complete_target(incomplete: str) -> list[tuple[str, str]]:
    """Offer the names of targets to the shell."""
    from tinykernel.codegen.targets import TARGETS

    return [(t.name, t.description) for t in TARGETS.values() if t.name.startswith(incomplete)]


DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help=".npz, .npy, .csv or .parquet, or recordings of a signal: files or a folder; a bare "
        "name is also looked for in the folder TINYKERNEL_DATA",
        show_default=False,
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="a .tkm or .pkl model", show_default=False)
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="column (tables), array (.npz) or file (.npy) of the labels",
        show_default=False,
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="COLUMN",
        help="column (tables), array (.npz) or file (.npy) of the groups, as given to train; it is "
        "no input",
        show_default=False,
    ),
]
MissingOption = Annotated[
    str | None,
    typer.Option(
        "--missing",
        help="rows that lack a value: keep takes the number that stands for it, drop leaves them "
        "out, median fills them with the medians of the training, error refuses them. Windows of "
        "recordings: drop or error",
        metavar="keep|drop|median|error",
        show_default="as in training",
    ),
]
TestSizeOption = Annotated[
    float | None,
    typer.Option(
        "--test-size",
        min=0.001,
        max=0.99,
        help="only the rows that train keeps aside for this size, --seed and --groups",
    ),
]
_SPLIT_SEED = typer.Option("--seed", min=0, max=LARGEST_SEED, help="see --test-size")
SplitSeedOption = Annotated[int, _SPLIT_SEED]
#: None, where it is not given, stands for the seed that the model remembers.
SeedOfTrainOption = Annotated[int | None, _SPLIT_SEED]
TargetOption = Annotated[
    str, typer.Option("--target", "-t", help="processor", autocompletion=complete_target)
]
TargetsOption = Annotated[
    list[str],
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="processor; repeat it, separate several by commas, or say all",
        autocompletion=complete_target,
    ),
]
BudgetOption = Annotated[
    Any,
    typer.Option(
        "--budget",
        parser=_budget,
        metavar="SIZE|LIMITS",
        help="flash that may be used, e.g. 30KB, or several limits: "
        "flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz or instructions=200k",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", metavar="", help="print the result as JSON on stdout")
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", metavar="", help="no progress, no table")
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", metavar="", help="replace what is there")
]


def expand_targets(given: Sequence[str], everything: Iterable[str]) -> tuple[list[str], bool]:
    """Read the values of a repeated ``--target``.

    Parameters
    ----------
    given : sequence of str
        Names, comma-separated names, or ``all``.
    everything : iterable of str
        What ``all`` stands for.

    Returns
    -------
    names : list of str
        Known targets, each once, in the order given.
    several : bool
        Whether the result is a list of results rather than one.

    Raises
    ------
    TinykernelError
        For an unknown target.

    Examples
    --------
    >>> expand_targets(["host,cortex-m4", "host"], [])
    (['host', 'cortex-m4'], True)
    """
    from tinykernel.codegen.targets import find_target

    asked = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if not asked:
        raise typer.BadParameter("give a target", param_hint="--target")
    names: dict[str, None] = {}
    for name in asked:
        names |= dict.fromkeys(everything if name == "all" else [find_target(name).name])
    return list(names), len(asked) > 1 or "all" in asked


def rows_for(
    model: Path,
    integer: IntegerModel,
    data: str,
    *,
    label: str | None = None,
    groups: str | None = None,
    selection: Selection | None = None,
    missing: str | None = None,
    test_size: float | None = None,
    seed: int = 0,
) -> Rows:
    """Load rows to run a model on; recordings are cut as those that it was trained on.

    Parameters
    ----------
    model : pathlib.Path
        The model's file, which says how recordings were cut.
    integer : IntegerModel
    data : str
        File or folder.
    label, groups, selection, test_size, seed
        As for `load_rows`.
    missing : str, optional
        What becomes of missing values, of recordings or (as in `selection`) of rows.

    Returns
    -------
    Rows
    """
    from tinykernel.data.load import load_rows
    from tinykernel.data.signals import signal_rows

    cut = recordings_for(model, integer, data, label=label, groups=groups, missing=missing)
    if cut is not None:
        return signal_rows(cut, test_size, seed)
    return load_rows(
        data,
        label=label,
        groups=groups,
        n_features=integer.n_inputs,
        feature_names=integer.feature_names,
        classes=integer.classes or None,
        values=integer.values is not None,
        selection=selection,
        test_size=test_size,
        seed=seed,
    )


def recordings_for(
    model: Path,
    integer: IntegerModel,
    data: str,
    *,
    label: str | None = None,
    groups: str | None = None,
    mixed: str | None = None,
    missing: str | None = None,
) -> Windows | None:
    """Cut recordings as those that a model was trained on; None where DATA are rows.

    Parameters
    ----------
    model : pathlib.Path
    integer : IntegerModel
    data : str
    label, groups, mixed, missing : str, optional
        Instead of what training did.

    Returns
    -------
    Windows or None
    """
    from tinykernel.data.signals import cut_for, remembered, takes_recordings
    from tinykernel.modelfile import about

    said = about(model)
    cutting = remembered(said, integer)
    if cutting is None or not takes_recordings(data, integer, said):
        return None
    check_missing(missing, ("drop", "error"), "windows of recordings")
    return cut_for(data, integer, cutting, label=label, groups=groups, mixed=mixed, missing=missing)


#: What --missing may say of rows of tables and arrays.
MISSING_OF_ROWS = ("keep", "drop", "median", "error")


def check_missing(missing: str | None, allowed: Sequence[str], what: str) -> None:
    """Refuse a value of --missing that the kind of data does not have."""
    if missing is not None and missing not in allowed:
        raise typer.BadParameter(
            f"{missing!r}: write {' or '.join(allowed)} for {what}", param_hint="--missing"
        )


def check_output_file(
    path: Path, suffixes: Sequence[str] = (), inputs: Iterable[Path] = ()
) -> None:
    """Refuse an output file that could not be written, before the long work begins.

    Parameters
    ----------
    path : pathlib.Path
        The file to be written later; not touched.
    suffixes : sequence of str
        The suffixes that are allowed; any by default.
    inputs : iterable of pathlib.Path
        Files that are read, which the output must not be.

    Raises
    ------
    TinykernelError
        If the suffix is another one, the file is an input, or the folder is missing or cannot be
        written.
    """
    refuse_inputs(path, inputs)
    if suffixes and path.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        raise TinykernelError(f"{path}: unknown kind of output; the name must end in {known}")
    if path.is_dir():
        raise TinykernelError(f"{path}: is a folder; choose a file name")
    if not path.parent.is_dir():
        raise TinykernelError(f"{path}: there is no folder {path.parent}; make it first")
    _check_writable(path.parent, path)


def check_output_folder(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse an output folder that could not be written, before the long work begins.

    Parameters
    ----------
    path : pathlib.Path
        The folder to be written later; not touched.
    force : bool
        Whether an earlier export may be replaced.
    inputs : iterable of pathlib.Path
        Files that are read, which must not be in the folder.

    Raises
    ------
    TinykernelError
        As in `tinykernel.files.replace_folder_atomically`, and if an input is in the folder.
    """
    refuse_inputs(path, inputs)
    try:
        refuse_occupied(path, force=force)
    except OSError as error:
        raise TinykernelError(f"{path}: cannot be read ({error.strerror})") from None
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise TinykernelError(f"{path}: {parent} is a file; choose another output folder")
    _check_writable(parent, path)


def _check_writable(folder: Path, path: Path) -> None:
    # Asking for the permission bits would not do: root passes them on a read-only file system.
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise TinykernelError(
            f"{path}: cannot be written ({reason}); choose another output path"
        ) from None
