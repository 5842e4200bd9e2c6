"""`convert`: a model of another library as an integer model, and what that changed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.coding import Coding
from tinykernel.base.errors import (
    ConvertError,
    DataError,
    OptionError,
    ShapeError,
    TinykernelError,
    warn,
)
from tinykernel.base.frames import coded_rows, collect, is_frame
from tinykernel.conversion import votes as voting
from tinykernel.conversion.checks import first_line
from tinykernel.conversion.columns import ModelColumns
from tinykernel.conversion.ensemble import Ensemble
from tinykernel.conversion.files import input_names, read_model
from tinykernel.conversion.thresholds import Limit, model_within
from tinykernel.conversion.trees import integer_model
from tinykernel.learn.teachers import instead_of, no_teacher
from tinykernel.model.chain import columns_problem
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.filters.spec import Filters
from tinykernel.pieces.trees.spec import Trees

#: By library, and by name of the class: the module of this package that reads it.
_FAMILIES: dict[str, dict[str, tuple[str, ...]]] = {
    "sklearn": {
        "linear": (
            *("LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "LinearSVC"),
            *("RidgeClassifier", "RidgeClassifierCV", "Perceptron", "LinearDiscriminantAnalysis"),
            *("PassiveAggressiveClassifier", "LinearRegression", "Ridge", "RidgeCV"),
            *("Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "LinearSVR", "SGDRegressor"),
            *("BayesianRidge", "HuberRegressor", "PassiveAggressiveRegressor", "ARDRegression"),
            *("PoissonRegressor", "GammaRegressor", "TweedieRegressor", "QuantileRegressor"),
            *("Lars", "LarsCV", "LassoLars", "LassoLarsCV", "OrthogonalMatchingPursuit"),
        ),
        "forests": (
            *("DecisionTreeClassifier", "DecisionTreeRegressor", "RandomForestClassifier"),
            *("RandomForestRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"),
            *("ExtraTreesClassifier", "ExtraTreesRegressor", "GradientBoostingClassifier"),
            *("GradientBoostingRegressor", "HistGradientBoostingClassifier"),
            *("HistGradientBoostingRegressor", "IsolationForest"),
        ),
        "gaussian": ("GaussianNB", "QuadraticDiscriminantAnalysis"),
        "networks": ("MLPClassifier", "MLPRegressor"),
    },
    "catboost": {"catboost": ("CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker")},
    "tinykernel": {
        "boosters": ("SavedBooster",),
        "catboost": ("SavedModel",),
        "networks": ("FloatNetwork",),
        "linear": ("LinearFile",),
        "onnxtrees": ("TreeFile",),
    },
    "torch": {"networks": ("Sequential",)},
    "lightgbm": {"boosters": ("LGBMClassifier", "LGBMRegressor", "LGBMRanker", "Booster")},
    "xgboost": {
        "boosters": (
            *("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor", "XGBRanker"),
            "Booster",
        )
    },
}
_KERNELS = ("SVC", "NuSVC", "SVR", "NuSVR")
_MEANS = ("BaggingRegressor", "VotingRegressor")
_ROUNDED = ", since weights and inputs are rounded"


@dataclass(frozen=True)
class Change:
    """How the answers of a converted model differ from those of the original on some rows."""

    rows: int
    differing: int  # rows with another label; of values, rows that are off by more than 1 %
    # Of differing rows; of values, the mean difference over the deviation, of the worst output.
    share: float
    largest: float  # of values the largest difference; of labels 0

    def __str__(self) -> str:
        """Say it in words."""
        if self.largest:
            return f"values differ by {self.largest:.3g} at most, on {self.rows} rows"
        return f"{self.differing} of {self.rows} rows have another label"


def convert(
    model: object,
    X: ArrayLike | None = None,
    *,
    max_change: float = 0.005,
    budget: Any = None,
    target: str = "cortex-m4",
    task: str | None = None,
    votes: str = "soft",
) -> IntegerModel:
    """Return the integer model that computes what a fitted model of another library does.

    Trees stay exactly as they are: every row of `X` falls on the same side of each threshold.
    Weights of linear models and networks are rounded.

    Parameters
    ----------
    model : fitted model, a Pipeline that ends in one, or the path of a file
        Of scikit-learn a linear model, a perceptron, a tree, or an ensemble of trees, behind
        scalers, imputers, encoders and selections of columns; of LightGBM, XGBoost or CatBoost; a
        Sequential of PyTorch.
    X : array-like, shape (n_rows, n_features), optional
        Raw rows, as the model was trained on. Their type is that of the inputs of the firmware,
        float32 without `X`. Thresholds may equal values in float64 that float32 rounds up, which
        only `X` in float64 keeps on their side. Linear models and networks need them for the ranges
        of inputs. Images have channels first, as the network takes them; those of the result have
        channels last.
    max_change : float, default=0.005
        Largest share of the rows of `X` whose label may differ; of values, largest mean difference
        over the standard deviation of the values of an output. Trees without a budget are exact:
        of them none but ties in the last bits may differ.
    budget : str, int or Limits, optional
        Limits as for `tinykernel.train`, which a smaller model keeps to: leaves or weights of fewer
        bits, then fewer trees. It needs `X`, whose labels say what each step costs.
    target : str, default="cortex-m4"
        The processor that the budget is for.
    task : {"classes", "values"}, optional
        What the outputs of a network of PyTorch or ONNX are where no softmax or sigmoid is at its
        end. One output is a value if this is None, and several are refused.
    votes : {"soft", "hard"}, default="soft"
        "hard" lets each tree of a forest vote for its class alone, which takes less flash and
        changes labels: at most `max_change` of those of `X`.

    Returns
    -------
    IntegerModel

    Raises
    ------
    TinykernelError
        If the model is of another kind, is not fitted, or would change too much.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> bool((convert(tree).predict(X) == tree.predict(X)).all())
    True
    """
    X = collect(X)
    model = _opened(model, task, X)
    steps, last, limit = _taken_apart(model)
    if limit is not None:
        limit.check(last)
    if getattr(last, "_preprocessor", None) is not None:  # of histograms with categories
        steps.append(("categories", last._preprocessor))
    classes = getattr(last, "classes_", None)  # a list of arrays with several outputs
    if isinstance(classes, np.ndarray) and len(classes) == 1:
        raise ConvertError("convert: the model knows one class, so all answers are the same")
    module = _reader_of(last)
    for note in getattr(last, "notes", ()):
        warn(note)
    if task is not None and not hasattr(model, "ready"):
        raise OptionError("task: only of networks; other models say what they predict")
    coding = module.coding_of(last) if hasattr(module, "coding_of") and not steps else None
    names = _names_of(model, last, coding)
    if names is not None and is_frame(X):
        of_frame = [*map(str, getattr(X, "columns", ()))]
        names, coding = _with_blanks(names, coding, of_frame)
        if problem := columns_problem(of_frame, [*names]):
            raise DataError(f"convert: the columns of X {problem}")
    columns = ModelColumns.of(steps, last, None if X is None else _rows(model, X, coding))
    binarizer = getattr(last, "_label_binarizer", getattr(last, "label_binarizer_", None))
    if getattr(binarizer, "y_type_", "").startswith("multilabel"):
        raise ConvertError("convert: a classifier of several labels a row is not supported")
    is_hard = _is_hard(votes, X, module)
    read = partial(_converted, last, columns, limit, is_hard)
    converted = read()
    if budget is not None:
        if X is None:
            raise OptionError(
                "convert: a budget needs X (--data), rows that show what each step costs"
            )
        n_trees = _ensemble_of(last).n_trees if hasattr(module, "ensemble_of") else 0
        converted = _within(read, model, n_trees, budget, target, X)
    if names is not None:
        converted = replace(converted, feature_names=names, coding=coding)
    if X is not None and budget is None and not is_hard and hasattr(module, "ensemble_of"):
        refuse_difference(*_both(model, converted, X), converted)
    elif X is not None:
        change = change_of(model, converted, X)
        if change.share > max_change:
            why = _ROUNDED if hasattr(module, "read") else ", by hard votes" if is_hard else ""
            raise ConvertError(
                f"convert: {change}{why}; raise max_change "
                f"above {change.share:.3g}, or train with tinykernel"
            )
    return converted


def _is_hard(votes: str, X: ArrayLike | None, module: Any) -> bool:
    """Say whether each tree votes for its class alone; TinykernelError where it cannot."""
    if votes not in ("soft", "hard"):
        raise OptionError(f'votes: {votes!r} is not "soft" or "hard"')
    if votes == "hard" and (X is None or not hasattr(module, "ensemble_of")):
        raise OptionError("votes: hard ones are of trees, and need X, which shows what they change")
    return votes == "hard"


def _names_of(model: Any, last: Any, coding: Coding | None) -> tuple[str, ...] | None:
    """Return the names by which the original takes the columns of frames; None if by place."""
    if getattr(model, "feature_names_in_", None) is not None:
        return tuple(map(str, model.feature_names_in_))
    by_place = "lightgbm" in (_library(last), getattr(last, "library", ""))
    if model is not last or (by_place and coding is None):
        return None
    names = input_names(last)  # CatBoost numbers those without a name
    return names if any(name and not name.isdecimal() for name in names) else None


def _with_blanks(
    names: tuple[str, ...], coding: Coding | None, of_frame: list[str]
) -> tuple[tuple[str, ...], Coding | None]:
    """Return names and a coding with the blanks of a frame, in whose place LightGBM has "_"."""
    blanks = {name.replace(" ", "_"): name for name in of_frame} | {n: n for n in of_frame}
    if coding is not None:
        texts, gaps = (
            {blanks.get(name, name): value for name, value in part.items()}
            for part in (coding.texts, coding.gaps)
        )
        coding = Coding(texts, gaps)  # type: ignore[arg-type]
    return tuple(blanks.get(name, name) for name in names), coding


def _converted(
    last: Any,
    columns: ModelColumns,
    limit: Limit | None,
    is_hard: bool,
    bits: int = 0,
    trees: int | None = None,
) -> IntegerModel:
    """Convert with leaves or weights of so many bits, 0 for the usual ones, and the first trees."""
    module = _reader_of(last)
    if not hasattr(module, "ensemble_of"):
        linear: IntegerModel = module.read(last, columns, min(bits or 8, 8))
        return linear if limit is None else limit.on_weights(linear)
    ensemble = _ensemble_of(last)
    ensemble = ensemble.hard() if is_hard else ensemble
    ensemble = ensemble if limit is None else limit.on_trees(ensemble)
    return integer_model(ensemble if trees is None else ensemble.first(trees), columns, bits)


def _ensemble_of(model: Any) -> Ensemble:
    """Return the trees of a model, also of one that is made of others."""
    module = _reader_of(model)
    ensemble = module.ensemble_of(model, *([_ensemble_of] if module is voting else []))
    assert isinstance(ensemble, Ensemble)
    return ensemble


def _within(
    read: Any, whole: object, n_trees: int, budget: Any, target: str, X: ArrayLike
) -> IntegerModel:
    """Convert within limits."""

    def cost(converted: IntegerModel) -> tuple[float, str]:
        change = change_of(whole, converted, X)
        return change.share, str(change)

    # By name, because it lies above this package.
    shrinking = import_module("tinykernel.conversion.shrinking")
    result: IntegerModel = shrinking.within(read, n_trees, budget, target, cost)
    return result


def is_foreign(obj: object) -> bool:
    """Say whether an object, or the last step of a Pipeline, is a model that is converted."""
    try:
        _reader_of(_taken_apart(obj)[1])
    except TinykernelError:
        return False
    return True


def change_of(model: Any, converted: IntegerModel, X: ArrayLike) -> Change:
    """Compare the answers of a model and of the converted one on rows."""
    model = _opened(model, "values" if converted.is_regressor else "classes", X)
    before, scores = _both(model, converted, X)
    after = converted.answers.predict(scores)
    if not converted.is_regressor:
        differing = int(np.sum(before != after))
        return Change(len(after), differing, differing / max(1, len(after)), 0.0)
    before, after = (np.reshape(values, (len(after), -1)) for values in (before, after))
    gap, deviation = np.abs(before - after), np.std(before, axis=0)
    share = gap / np.where(deviation > 0, deviation, 1.0)
    differing = int(np.sum((share > 0.01).any(axis=1)))
    worst = float(share.mean(axis=0).max(initial=0))
    return Change(len(after), differing, worst, float(gap.max(initial=0)))


@dataclass(frozen=True)
class LayerChange:
    """How the levels 0..255 of a layer of a quantized file differ from those of the model."""

    place: str
    largest: int
    mean: float
    clipped: float  # share of the levels of the model that are 0 or 255


def changes_by_layer(model: Any, converted: IntegerModel, X: ArrayLike) -> list[LayerChange]:
    """Compare the levels of each layer of a quantized network with those of the model on rows."""
    network = _opened(model, "values" if converted.is_regressor else "classes", X)
    stage = converted.find(Filters)
    if stage is None or not getattr(network, "has_levels", False):
        raise ConvertError("convert: only quantized files of networks have levels to compare")
    rows, changes = network.rows_of(X), list[LayerChange]()
    grid = converted.input
    first = converted.stages[0].run(rows.astype(grid.dtype), grid)
    maps = [first.reshape(len(rows), *stage.shapes[0])]
    for number, (place, levels) in enumerate(network.levels_of(rows)):
        maps.append(stage.layer(number, maps))
        if levels is None:
            continue
        gap, ends = np.abs(maps[-1] - levels), np.isin(maps[-1], (0, 255))
        changes.append(LayerChange(place, int(gap.max()), float(gap.mean()), float(ends.mean())))
    return changes


def _both(model: Any, converted: IntegerModel, X: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the answers of the original and the scores of the converted model."""
    rows = model.rows_of(X) if hasattr(model, "rows_of") else X
    return _answers(model, X, converted), converted.scores(rows)


def _answers(model: Any, X: ArrayLike, converted: IntegerModel) -> NDArray[Any]:
    """Return what the original predicts; a Booster gives probabilities or values."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None and hasattr(model, "named_steps") and not hasattr(X, "columns"):
        X = import_module("pandas").DataFrame(np.asarray(X), columns=names)
    last = _taken_apart(model)[1]
    module = _reader_of(last)
    rows = _rows(model, X, converted.coding)
    try:
        if hasattr(module, "answers_of") and model is last:
            answers = module.answers_of(model, X, rows)
        else:
            answers = np.asarray(model.predict(X))
    except TinykernelError:
        raise
    except Exception as error:  # each library has errors of its own
        reason = first_line(error)
        raise DataError(f"convert: the {type(model).__name__} refuses X: {reason}") from None
    if type(model).__name__.endswith("Booster"):
        answers = module.labels_of(answers, converted)
    if not converted.is_regressor and answers.ndim > 1 and answers.shape[1] > 1:
        raise ConvertError(
            f"convert: the {type(model).__name__} predicts {answers.shape[1]} columns in place of "
            "a label; train two classes by 'binary:logistic'"
        )
    return np.asarray(answers[:, 0] if answers.shape[1:] == (1,) else answers)


def _rows(model: Any, X: Any, coding: Coding | None = None) -> NDArray[Any]:
    if coding is not None and is_frame(X):
        X = coded_rows(X, coding, may_lack=True)[0]
    rows = np.asarray(model.rows_of(X) if hasattr(model, "rows_of") else X)
    if rows.dtype == object:  # a table of numbers and booleans
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError("convert: X holds text; code it as numbers before training") from None
    if rows.ndim and not len(rows):
        raise DataError("convert: X has no rows")
    if rows.ndim != 2:
        raise ShapeError(f"convert: X has the shape {rows.shape}, not (n_rows, n_features)")
    return rows


def _taken_apart(model: object) -> tuple[list[tuple[str, Any]], Any, Limit | None]:
    """Return the steps before the model of a Pipeline, flat, that model, and its limit if moved.

    Of a search, such as GridSearchCV, it is the best one.
    """
    model = getattr(model, "best_estimator_", model)
    if _library(model) == "sklearn" and (within := model_within(model)):
        *parts, inner_limit = _taken_apart(within[0])
        if inner_limit is not None and within[1] is not None:
            raise ConvertError("convert: a threshold of a threshold is not supported; set one")
        return parts[0], parts[1], within[1] or inner_limit
    steps = getattr(model, "steps", None)
    if not isinstance(steps, list) or not hasattr(model, "named_steps"):
        return [], model, None
    before: list[tuple[str, Any]] = []
    for name, step in steps[:-1]:
        inner, last, _ = _taken_apart(step)
        before += [*inner, (name, last)]
    inner, last, limit = _taken_apart(steps[-1][1])
    return [*before, *inner], last, limit


def _opened(model: Any, task: str | None, X: ArrayLike | None) -> Any:
    """Return the model of a file, or the layers of a network; any other model as it is."""
    if task not in (None, "classes", "values"):
        raise OptionError(f'task: {task!r} is not "classes" or "values"')
    if isinstance(model, str | Path):
        model = read_model(Path(model))
    elif _library(model) == "torch" and type(model).__name__ == "Sequential":
        model = import_module("tinykernel.conversion.networks.torch").of_torch(model)
    return model.ready(X, task) if hasattr(model, "ready") else model


def _library(model: Any) -> str:
    return type(model).__module__.split(".")[0]


def _reader_of(model: Any) -> Any:
    """Return the module that reads a model."""
    kind, library = type(model).__name__, _library(model)
    if library == "sklearn" and kind in voting.KINDS:
        return _reader_of_members(model)
    is_line = getattr(model, "booster", "") == "gblinear" or (
        kind in _KERNELS and getattr(model, "kernel", "") == "linear"
    )
    if is_line:
        votes = kind in _KERNELS and len(getattr(model, "classes_", ())) > 2
        return import_module(f"tinykernel.conversion.{'networks.pairs' if votes else 'linear'}")
    for family, names in _FAMILIES.get(library, {}).items():
        if kind in names:
            return import_module(f"tinykernel.conversion.{family}")
    if isinstance(model, type):
        raise ConvertError(
            f"convert: {model.__name__} is a class; give a fitted model, as {model.__name__}(...)"
            ".fit(X, y) returns"
        )
    is_fitted = hasattr(model, "n_features_in_")
    if library == "sklearn" and hasattr(model, "refit") and not is_fitted:  # a search
        raise ConvertError(f"convert: the {kind} is not fitted, or without refit=True")
    if hasattr(model, "forward") and hasattr(model, "state_dict"):
        raise ConvertError(
            f"convert: of PyTorch's modules a Sequential is read, and no {kind}; write a file with "
            "torch.onnx.export and convert that"
        )
    if hasattr(model, "fit") and (hasattr(model, "predict") or no_teacher(model)):
        raise ConvertError(f"convert: {instead_of(model)}")
    raise ConvertError(
        f"convert: a {library} {kind} is not known; known are linear models, trees, forests and "
        "perceptrons of scikit-learn, LightGBM, XGBoost, CatBoost, PyTorch's Sequential and files "
        "of ONNX: see docs/convert.md"
    )


def _reader_of_members(model: Any) -> Any:
    """Return the module that reads a model of several others: trees, or linear models."""
    kind = type(model).__name__
    if not hasattr(model, "estimators_"):
        raise ConvertError(f"convert: the {kind} is not fitted")
    if any(hasattr(member, "steps") for member in model.estimators_):
        raise ConvertError(
            f"convert: members of the {kind} are Pipelines; put their steps before the {kind}"
        )
    modules = [_reader_of(member) for member in model.estimators_]
    if all(hasattr(module, "ensemble_of") for module in modules):
        return voting
    is_sum = kind in ("OneVsRestClassifier", "MultiOutputRegressor", *_MEANS)
    if is_sum and {module.__name__.rpartition(".")[2] for module in modules} == {"linear"}:
        return modules[0]
    raise ConvertError(
        f"convert: a {kind} is read if its members are trees{' or linear models' * is_sum} alone; "
        "let it teach: tinykernel.train(X, y, teacher=...)"
    )


_LAST_BITS = 2.0**-18  # of the largest score: sums of libraries are float32, ours are not


def refuse_difference(before: NDArray[Any], scores: NDArray[Any], converted: IntegerModel) -> None:
    """Refuse a model whose scores do not have the answers of the original, which `before` has."""
    after, scale = converted.answers.predict(scores), converted.decision_scale
    trees = converted.find(Trees)
    n_trees = 0 if trees is None else trees.size.size
    largest = max(abs(float(converted.least_score)), float(np.abs(scores).max(initial=0)))
    near = largest * _LAST_BITS + (n_trees if scale < 1 else 0)
    if converted.is_regressor:
        gaps = np.abs(np.reshape(before, (len(after), -1)) - np.reshape(after, (len(after), -1)))
        bound: Any = near * scale
        if getattr(converted.answers, "curve", ""):  # it magnifies what is lost by sums
            bound = 2 * scale + 2.0**-14 * np.abs(np.reshape(before, gaps.shape))
        wrong = (~(gaps <= bound)).any(axis=1)
    else:
        place = {label: number for number, label in enumerate(converted.classes)}
        other = np.array([place.get(label, -1) for label in before.tolist()], dtype=np.int64)
        every = np.arange(len(other))
        behind = scores.max(axis=1).astype(np.int64) - scores[every, other]
        wrong = (before != after) & ((other < 0) | (behind > near))
    if not np.any(wrong):
        return
    row = int(np.argmax(wrong))
    raise ConvertError(
        f"convert: row {row} of X gives {after[row]}, but {before[row]} by the original, and so "
        f"{int(wrong.sum())} of {len(wrong)} rows differ, though trees are converted exactly; the "
        "usual causes are a value that stands for missing ones, columns of categories and another "
        "order of columns"
    )


def as_model(obj: Any) -> Any:
    """Return a model of another library as an `IntegerModel`, and any other object as it is."""
    return convert(obj) if is_foreign(obj) else obj


def for_any_model(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function, whose first argument is a model, take one of any library."""
    name = function.__code__.co_varnames[0]

    @wraps(function)
    def converting(*arguments: Any, **named: Any) -> Any:
        if arguments:
            arguments = (as_model(arguments[0]), *arguments[1:])
        elif name in named:
            named = {**named, name: as_model(named[name])}
        return function(*arguments, **named)

    return converting
