"""Models of other libraries: random ones beside their conversions, and damaged files of them."""

import os
import re
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, TimeoutError
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble, impute, linear_model, neural_network, preprocessing, svm, tree
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import tinykernel
from tests.fuzz.mutate import mutate_bytes
from tinykernel.base.errors import TinykernelError
from tinykernel.pieces.trees.spec import Trees

#: Every refusal of a random model has one of these.
REFUSALS = (
    "a leaf is not a finite number",
    "missing or infinite values",
    "before weights",
    "boosters of the kind '\\w+' are not supported",
    "encodes scaled values; encode first",
    "fills scaled or encoded values; fill first",
    "no input has a weight",
    "no tree has a threshold",
    "the offset is too large",
    "of input \\d+ before weights are no straight line",
    "since weights and inputs are rounded",
    "the model knows one class",
)
#: What must not be.
FAULTS = (
    *("labels differing", "values outside of the bound", "refusals of other words"),
    *("tracebacks", "ended the process", "too slow"),
)
_LIMIT = 20  # seconds of a processor for a damaged file
_HANGS = 10  # times as long on the clock, which a busy machine may take
_TIE = 1e-6  # of scores, which a conversion may break otherwise
_BOUND = 2e-5  # of values of trees, beside the largest


class Drawn(NamedTuple):
    """A fitted model, rows that it was trained on, and whether its conversion is exact."""

    model: Any
    X: NDArray[Any]
    is_exact: bool


def _pick(rng: np.random.Generator, *options: Any) -> Any:
    return options[rng.integers(len(options))]


def _trees(rng: np.random.Generator, values: bool) -> Any:
    """Return an unfitted tree or ensemble of trees."""
    end, seed = "Regressor" if values else "Classifier", int(rng.integers(99))
    weight = {} if values else {"class_weight": _pick(rng, None, "balanced")}
    size = {"max_depth": _pick(rng, 2, 5, None), "min_samples_leaf": _pick(rng, 1, 4)}
    few = {"n_estimators": int(rng.integers(1, 7)), "random_state": seed}
    boosted = {**few, "max_depth": 3, "learning_rate": _pick(rng, 0.1, 0.7)}
    kinds = [
        lambda: getattr(tree, f"DecisionTree{end}")(**size, **weight, random_state=seed),
        lambda: getattr(tree, f"ExtraTree{end}")(**size, **weight, random_state=seed),
        lambda: getattr(ensemble, f"RandomForest{end}")(**size, **few, **weight),
        lambda: getattr(ensemble, f"ExtraTrees{end}")(**size, **few, **weight, bootstrap=True),
        lambda: getattr(ensemble, f"GradientBoosting{end}")(
            **boosted, init=_pick(rng, None, "zero"), subsample=_pick(rng, 1.0, 0.7)
        ),
        lambda: getattr(ensemble, f"HistGradientBoosting{end}")(
            max_iter=4, max_leaf_nodes=8, categorical_features=_pick(rng, None, [0]), **weight
        ),
        lambda: ensemble.IsolationForest(**few, contamination=_pick(rng, "auto", 0.1)),
        lambda: getattr(ensemble, f"Bagging{end}")(**few, max_features=_pick(rng, 0.5, 1.0)),
    ]
    if not values:
        stump = tree.DecisionTreeClassifier(max_depth=2, random_state=seed)
        kinds.append(lambda: ensemble.AdaBoostClassifier(stump, **few))
        kinds.append(lambda: OneVsRestClassifier(ensemble.RandomForestClassifier(**few)))
    if find_spec("lightgbm"):
        light = getattr(import_module("lightgbm"), f"LGBM{end}")
        kinds.append(lambda: light(**boosted, verbose=-1, n_jobs=1, **weight))
    if find_spec("xgboost"):
        extreme = getattr(import_module("xgboost"), f"XGB{end}")
        missing = {"missing": _pick(rng, np.nan, np.nan, -1.0)}
        booster = _pick(rng, "gbtree", "gbtree", "dart")
        kinds.append(lambda: extreme(**boosted, **missing, booster=booster, n_jobs=1))
    if find_spec("catboost"):
        cat = getattr(import_module("catboost"), f"CatBoost{end}")
        kinds.append(lambda: cat(**boosted, verbose=False, allow_writing_files=False))
    return _pick(rng, *kinds)()


def _weights(rng: np.random.Generator, values: bool) -> Any:
    """Return an unfitted model whose weights are rounded."""
    if values:
        kinds: list[Any] = [linear_model.LinearRegression(), linear_model.Ridge(), svm.LinearSVR()]
        return _pick(rng, *kinds, neural_network.MLPRegressor(8, max_iter=30))
    kinds = [linear_model.LogisticRegression(), svm.LinearSVC(), linear_model.SGDClassifier()]
    return _pick(rng, *kinds, neural_network.MLPClassifier((9, 5), max_iter=40))


def _steps(rng: np.random.Generator, gaps: bool) -> list[Any]:
    """Return steps before a model."""
    one_hot = preprocessing.OneHotEncoder(
        handle_unknown="ignore", sparse_output=False, min_frequency=_pick(rng, None, 0.1)
    )
    ordinal = preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    scaler = _pick(
        rng,
        preprocessing.StandardScaler(with_mean=_pick(rng, True, False)),
        preprocessing.MinMaxScaler(clip=_pick(rng, True, False)),
        preprocessing.RobustScaler(unit_variance=_pick(rng, True, False)),
        preprocessing.MaxAbsScaler(),
    )
    filler = impute.SimpleImputer(
        missing_values=_pick(rng, np.nan, np.nan, -1, 0) if not gaps else np.nan,
        strategy=_pick(rng, "mean", "median", "most_frequent"),
        add_indicator=_pick(rng, False, True),
        keep_empty_features=_pick(rng, False, True),
    )
    coded = make_column_transformer((_pick(rng, one_hot, ordinal), [0]), (scaler, [1]))
    coded.set_params(remainder="passthrough")
    return _pick(rng, [], [], [scaler], [filler], [filler, scaler], [VarianceThreshold()], [coded])


def draw(rng: np.random.Generator) -> Drawn:
    """Return a fitted model of random options, on random rows."""
    dtype, n = _pick(rng, "float32", "float32", "float64", "int16", "uint8"), 300
    X = np.column_stack([rng.integers(0, 6, n), rng.normal(0, 3, (n, int(rng.integers(1, 5))))])
    values, is_exact, gaps = bool(rng.random() < 0.3), bool(rng.random() < 0.75), False
    total = X.sum(axis=1)
    if dtype[0] == "f":
        X[rng.random(X.shape) < 0.03] = _pick(rng, -1, 0)
        gaps = is_exact and bool(rng.random() < 0.4)
        X[rng.random(X.shape) < 0.1 * gaps] = np.nan
    else:
        X = np.clip(np.rint(X * 4), 0, 255) if dtype == "uint8" else np.rint(X * 4)
    y = total if values else np.digitize(total, _pick(rng, [3], [1, 5], [0, 3, 6]))
    if not values and rng.random() < 0.4:
        y = y > 1 if rng.random() < 0.5 else np.array(["a", "bé", "c", "d"])[y]
    last = _trees(rng, values) if is_exact else _weights(rng, values)
    model = make_pipeline(*steps, last) if (steps := _steps(rng, gaps)) else last
    weight = {} if steps or rng.random() < 0.7 or not is_exact else {"sample_weight": total**2}
    X = X.astype(dtype)
    return Drawn(model.fit(X, y, **weight), X, is_exact)


def rows_about(converted: Any, X: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return rows of X, rows near them, and rows at thresholds and one step beside."""
    rows = np.repeat(X, 4, axis=0)
    parts = [part for part in converted.readout.parts if isinstance(part, Trees)]
    if X.dtype.kind != "f":
        moved = rows + rng.integers(-1, 2, rows.shape) * (rng.random(rows.shape) < 0.3)
        return np.clip(moved, np.iinfo(X.dtype).min, np.iinfo(X.dtype).max).astype(X.dtype)
    # With X in float64, a threshold stands for the values that float32 rounds to it.
    is_single = X.dtype == np.float32
    moved = rng.random(rows.shape) < (0.3 if is_single else 1.0)
    rows = (rows + rng.normal(size=rows.shape) * moved).astype(np.float32)
    for part in parts if is_single else ():
        bits = part.threshold.astype(np.int64)
        limits = np.where(bits < 0, 0x80000000 - bits, bits).astype(np.uint32).view(np.float32)
        limits = limits[np.isfinite(limits)]
        if limits.size:
            on, step = rng.random(rows.shape) < 0.2, rng.integers(-1, 2, rows.shape)
            at = rng.choice(limits, rows.shape)
            beside = np.nextafter(at, np.float32(np.inf) * step.clip(-1, 1))
            rows = np.where(on, np.where(step == 0, at, beside), rows)
    return rows.astype(np.float32)


def _ties(model: Any, rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows have two labels that are as good as equal."""
    if hasattr(model, "predict_proba"):
        scores = np.sort(model.predict_proba(rows), axis=1)
        return np.asarray(scores[:, -1] - scores[:, -2] < _TIE)
    scores = model.decision_function(rows) if hasattr(model, "decision_function") else np.ones(1)
    return np.asarray(np.abs(scores).reshape(len(scores), -1).min(axis=1) < _TIE)


def compare(drawn: Drawn, rng: np.random.Generator) -> Counter[str]:
    """Convert a model and count the rows on which it answers otherwise."""
    model, X, is_exact = drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted = tinykernel.convert(model, X)
        if not is_exact:  # the share of labels that may change was checked
            return Counter({"models rounded": 1})
        counts = Counter({"models converted": 1})
        for rows in (X, rows_about(converted, X, rng)):
            try:
                expected = np.asarray(model.predict(rows))
            except ValueError:  # a step or the model refuses values that it has not seen
                continue
            answers = converted.predict(rows)
            counts["rows compared"] += len(rows)
            if converted.is_regressor:
                off = np.abs(answers - expected) > _BOUND * max(1.0, np.abs(expected).max())
                counts["values outside of the bound"] += int(off.sum())
            else:
                differs = answers != expected.reshape(len(rows))
                if differs.any():
                    differs &= ~_ties(model, rows)
                counts["labels differing"] += int(differs.sum())
    return counts


def random_models(n: int, seed: int, say: Callable[[str], None] = print) -> Counter[str]:
    """Compare so many random models with their conversions; `say` tells of each fault."""
    counts: Counter[str] = Counter()
    for number in range(n):
        rng = np.random.default_rng((seed, number))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                drawn = draw(rng)
            except Exception:  # each library has errors of its own for options that it refuses
                counts["models not trained"] += 1
                continue
        try:
            found = compare(drawn, rng)
        except TinykernelError as error:
            reason = next((words for words in REFUSALS if re.search(words, str(error))), None)
            known = "\n" not in str(error) and reason is not None
            found = Counter({f"refused: {reason}" if known else "refusals of other words": 1})
            if not known:
                say(f"{seed}, {number}: {drawn.model}: {error}")
        except Exception:
            found = Counter({"tracebacks": 1})
            say(f"{seed}, {number}: {drawn.model}: {traceback.format_exc(limit=-3)}")
        if found["labels differing"] or found["values outside of the bound"]:
            say(f"{seed}, {number}: {drawn.model}: {dict(found)}")
        counts += found
    return counts


def files(folder: Path) -> list[Path]:
    """Write model files of every format whose library is there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = (X[:, 0] > 0) * 1 + (X[:, 1] > 0.5)
    forest = ensemble.RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, y)
    tinykernel.save(tinykernel.convert(forest), folder / "m.tkm")
    catboost = Path(__file__).parents[1] / "conversion/catboost.json"
    (folder / "catboost.json").write_bytes(catboost.read_bytes())
    if find_spec("lightgbm"):
        light = import_module("lightgbm").LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1)
        light.fit(X, y).booster_.save_model(str(folder / "m.txt"))
    if find_spec("xgboost"):
        extreme = import_module("xgboost").XGBClassifier(n_estimators=3, n_jobs=1).fit(X, y)
        for suffix in (".json", ".ubj"):
            extreme.save_model(str(folder / f"m{suffix}"))
    if find_spec("skops"):
        import_module("skops.io").dump(forest, folder / "m.skops")
    if find_spec("onnx"):
        onnx = import_module("onnx")
        of, value = onnx.helper, onnx.TensorProto.FLOAT
        names = [onnx.numpy_helper.from_array(X[:3], "w")]
        nodes = [of.make_node("MatMul", ["x", "w"], ["s"]), of.make_node("Softmax", ["s"], ["p"])]
        ends = [of.make_tensor_value_info(name, value, [1, 3]) for name in "xp"]
        graph = of.make_graph(nodes, "g", ends[:1], ends[1:], names)
        onnx.save(of.make_model(graph, opset_imports=[of.make_opsetid("", 13)]), folder / "m.onnx")
    return sorted(folder.iterdir())


def _read(path: str) -> str:
    """Read a file as the command line does; return what came of it."""
    before = _processor_time()
    what = _outcome(path)
    return what if _processor_time() - before < _LIMIT else "too slow"


def _processor_time() -> float:
    """Seconds of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _outcome(path: str) -> str:
    """Say whether a file was accepted or refused, or what else came of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.endswith(".tkm"):
                tinykernel.load(path)
            else:
                X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
                tinykernel.convert(path, X, max_change=1.0)
    except TinykernelError as error:
        return "refused" if "\n" not in str(error) else f"tracebacks: {error}"
    except Exception:
        return f"tracebacks: {traceback.format_exc(limit=-3)}"
    return "accepted"


def damaged(n: int, seed: int, say: Callable[[str], None] = print) -> Counter[str]:
    """Read so many damaged files, in a process that may end."""
    counts: Counter[str] = Counter()
    pool = None
    with tempfile.TemporaryDirectory() as folder:
        whole = [(path, path.read_bytes()) for path in files(Path(folder))]
        for number in range(n):
            rng = np.random.default_rng((seed, number))
            (path, data), (_, other) = _pick(rng, *whole), _pick(rng, *whole)
            broken = path.with_name(f"damaged{path.suffix}")
            broken.write_bytes(mutate_bytes(data, other, rng))
            if pool is None:
                pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
                for good, _ in whole:  # imports and compiles
                    pool.submit(_read, str(good)).result()
            try:
                what = pool.submit(_read, str(broken)).result(_HANGS * _LIMIT)
            except (BrokenProcessPool, TimeoutError) as error:
                what = "ended the process" if isinstance(error, BrokenProcessPool) else "too slow"
                for process in pool._processes.values() if pool._processes else ():
                    process.kill()
                pool.shutdown(wait=False)
                pool = None
            counts[what.split(": ")[0]] += 1
            if what not in ("refused", "accepted"):
                say(f"{seed}, {number}: {path.name}: {what}")
    if pool is not None:
        pool.shutdown()
    return counts
