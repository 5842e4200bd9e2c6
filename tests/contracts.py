"""What every piece and every kind of model keeps, after aeon's checks of estimators.

A new stage, read-out or kind gets a sample, and no test of its own for any of this. That C computes
what Python does is checked of all samples at once, in `tests/firmware/test_kinds.py`.
"""

import copy
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tests.codegen.test_certificate import Checker, change_entry, export_of, lessen
from tests.firmware.image import with_extremes
from tinykernel import load, report, save
from tinykernel.base import progress
from tinykernel.base.errors import TinykernelError
from tinykernel.base.windows import as_rows
from tinykernel.compile.plan import pack
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.catalogue import PARTS, STAGES


def pieces_of(model: IntegerModel) -> dict[str, Any]:
    """Return the stages and parts of a model by the names of their classes."""
    return {type(piece).__name__: piece for piece in (*model.stages, *model.readout.parts)}


def missing(samples: list[IntegerModel]) -> set[str]:
    """Return the stages and parts that no sample has."""
    known = {name for model in samples for name in pieces_of(model)}
    return {cls.__name__ for cls in (*STAGES, *PARTS)} - known


def check_piece(model: IntegerModel, checker: Checker, folder: Path) -> None:
    """Check the stages and parts of a sample: all that holds of each model of them."""
    check_ranges(model)
    check_copies(model, folder)
    check_proof(model, checker)
    if model.hop:
        check_stream(model)


def check_ranges(model: IntegerModel) -> None:
    """No value leaves what a stage says that it gives; a row gives the same alone."""
    rows = with_extremes(model, 12)
    values, numbers = np.split(rows, [model.input.size], axis=1)
    for stage, grid in zip(model.stages, model.grids(), strict=False):
        if isinstance(stage, Beside):
            values = np.hstack([values, numbers])
        values, made = stage.run(values, grid), stage.gives(grid)
        assert values.shape == (len(rows), made.size), stage.KIND
        assert values.min() >= made.low, stage.KIND
        assert values.max() <= made.high, stage.KIND
    scores, proved = model.scores(rows), model.ranges()
    assert all(one.fits for one in proved)
    assert scores.dtype == np.int32
    assert proved[-1].low <= scores.min() <= scores.max() <= proved[-1].high
    assert np.array_equal(scores[3:4], model.scores(rows[3:4]))


def check_copies(model: IntegerModel, folder: Path) -> None:
    """Saved, loaded, pickled and copied it is the same, and the file has the same bytes again."""
    file, again = folder / "a.tkm", folder / "b.tkm"
    save(model, file)
    same = load(file)
    save(same, again)
    assert again.read_bytes() == file.read_bytes()
    for other in (same, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other == model
        assert other.fingerprint() == model.fingerprint()


def check_proof(model: IntegerModel, checker: Checker) -> None:
    """The proof is accepted; with an entry of a table or a byte of memory changed it is not."""
    export = export_of(model)
    checker.accept(export)
    tables = pack(model).tables  # of which each is the one of some sample
    number = int(model.fingerprint()[:8], 16)
    table = tables[number % len(tables)].name
    text = change_entry(export.text, table)
    assert f"{table} is not" in checker.refuse(export._replace(text=text))
    for turn, kind in enumerate(export.proof["memory"], number):
        header = lessen(export.header, rf"#define M_{kind.upper()}_(?:WORDS|BYTES) ")
        memory = export.proof["memory"] | {kind: export.proof["memory"][kind] - 1}
        proof = export.proof | {"memory": memory}
        # Both of them, or one, sample by sample.
        forged = ({"header": header, "proof": proof}, {"proof": proof}, {"header": header})[
            turn % 3
        ]
        assert "memory" in checker.refuse(export._replace(**forged))
    first = checker.forged(export, lessen(export.text, "#define TK_FIRST_WORDS +"))
    assert "TK_FIRST_WORDS" in checker.refuse(first)
    if "tk_signal" in export.text:
        running = re.sub(r"(\d+)u, /\* running", "8u, /* running", export.text)
        assert "places in a stream" in checker.refuse(checker.forged(export, running))


def check_stream(model: IntegerModel) -> None:
    """All windows of a stream have the scores of single ones."""
    rng, rows = np.random.default_rng(0), model.input.rows
    shape = rows + 7 * model.hop + model.hop // 2, model.input.channels + model.n_numbers
    samples = (1000 * rng.standard_normal(shape)).astype(model.raw_dtype)
    view = np.lib.stride_tricks.sliding_window_view(samples, rows, axis=0)[:: model.hop]
    expected = model.scores(as_rows(view.transpose(0, 2, 1), model.n_numbers))
    assert np.array_equal(model.stream_scores(samples), expected)
    assert model.stream_scores(samples[: rows - 1]).shape == (0, model.n_scores)


def check_kind(estimator: Any, X: NDArray[Any], y: NDArray[Any], folder: Path) -> None:
    """Check a kind of model by an estimator that trains it, on rows that it learns."""
    fitted = fit(estimator, X, y)
    assert np.array_equal(fitted.quantize().predict(X), fitted.predict(X))
    check_bytes(estimator, fitted, X, y)
    check_files(fitted, X, folder)
    check_hostile_rows(estimator, X, y)
    check_interrupts(fitted, X, y)
    check_budget(estimator, fitted, X, y)


def check_one_class(estimator: Any, X: NDArray[Any], folder: Path) -> None:
    """Check what learns one class: it has no labels, no file of its own, and no budget."""
    y = np.zeros(len(X), int)
    fitted = fit(estimator, X, y)
    check_bytes(estimator, fitted, X, y)
    check_copies(fitted.quantize(), folder)
    check_hostile_rows(estimator, X, y)
    check_interrupts(fitted, X, y)


def fit(estimator: Any, X: NDArray[Any], y: NDArray[Any], **options: Any) -> Any:
    """Train a clone with some options, and no warning of Ctrl-C."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).set_params(**options).fit(X, y)


def fit_or_refuse(estimator: Any, X: NDArray[Any], y: NDArray[Any], **options: Any) -> Any:
    """Return the model, or our error of one line."""
    try:
        return fit(estimator, X, y, **options)
    except TinykernelError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return error


def check_bytes(estimator: Any, fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> None:
    """The model is the same in any number of threads, and of rows in any order."""
    order = np.random.default_rng(0).permutation(len(X))
    assert fit(estimator, X[order], y[order]).quantize() == fitted.quantize()
    assert fit(estimator, X, y).quantize() == fitted.quantize()
    if "n_jobs" in estimator.get_params():
        assert fit(estimator, X, y, n_jobs=2).quantize() == fitted.quantize()


def check_files(fitted: Any, X: NDArray[Any], folder: Path) -> None:
    """Pickled, saved and loaded it predicts the same; a clone has its parameters alone."""
    others = [pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)]
    for suffix in ("tkm", "pkl"):
        save(fitted, folder / f"m.{suffix}")
        others.append(load(folder / f"m.{suffix}"))
    for other in others:
        assert other.quantize() == fitted.quantize()
        assert np.array_equal(other.predict(X), fitted.predict(X))
        assert other.get_params() == fitted.get_params()
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "n_features_in_")


def check_hostile_rows(estimator: Any, X: NDArray[Any], y: NDArray[Any]) -> None:
    """One row, one class, constant inputs, NaN: a model of finite scores, or one line."""
    gaps = np.where(np.arange(X.size).reshape(X.shape) % 7, X.astype(float), np.nan)
    for rows, labels in ((X[:1], y[:1]), (X, y * 0), (X * 0, y), (gaps, y)):
        model = fit_or_refuse(estimator, rows, labels)
        if not isinstance(model, TinykernelError):
            assert len(model.predict(rows)) == len(rows)
            assert model.quantize().ranges()


def check_interrupts(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> None:
    """Ctrl-C at any step leaves the best model so far, or the one that was there: no mixture."""
    seen: list[progress.Progress] = []
    with progress.observing(seen.append):
        fit(fitted, X, y)
    for place in sorted({0, len(seen) // 2, len(seen) - 1}):
        left = iter(range(place))

        def interrupt(_: progress.Progress, left: Any = left) -> None:
            if next(left, None) is None:
                interrupt.__defaults__ = (iter(range(10**9)),)
                raise KeyboardInterrupt

        model = copy.deepcopy(fitted)
        try:
            with progress.observing(interrupt), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y + 5)
        except KeyboardInterrupt:
            assert np.array_equal(model.predict(X), fitted.predict(X))
        else:
            assert len(model.predict(X)) == len(X)
            assert model.quantize().ranges()


def check_budget(estimator: Any, fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> None:
    """A budget that the model needs is kept; one of half of it too, or it is refused."""
    flash = report(fitted.quantize(), "cortex-m4", compiler="none").flash
    for budget in (2 * flash, flash // 2):
        model = fit_or_refuse(estimator, X, y, budget=budget)
        if isinstance(model, TinykernelError):
            assert model.code == "budget"
        else:
            assert report(model.quantize(), "cortex-m4", budget, compiler="none").fits
