"""Boosters of LightGBM and XGBoost as plain types; as a script, those of a file.

The script is run in a process of its own, which loaders of damaged files may end. So this module
imports nothing of this package.
"""

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def of_lightgbm(booster: Any) -> dict[str, Any]:
    """Return the dump of a Booster, and by `categorical` the columns that hold categories."""
    dump: dict[str, Any] = booster.dump_model()
    columns = re.search(
        r"\n\[categorical_feature: ([\d,]+)\]", booster.model_to_string(num_iteration=1)
    )
    return dump | {"categorical": list(map(int, columns[1].split(","))) if columns else []}


def of_xgboost(booster: Any) -> dict[str, Any]:
    """Return the learner of a Booster."""
    learner: dict[str, Any] = json.loads(bytes(booster.save_raw("json")))["learner"]
    return learner


def answers_of(booster: Any, rows: Any) -> Any:
    """Return what a Booster predicts of rows of numbers, with the codes of categories."""
    if type(booster).__module__.startswith("lightgbm"):
        return booster.predict(rows)
    names, kinds = booster.feature_names, booster.feature_types
    matrix = import_module("xgboost").DMatrix
    return booster.predict(matrix(rows, feature_names=names, feature_types=kinds))


def _opened(library: str, path: str) -> tuple[Any, tuple[int, int]]:
    """Read a file, and count its rounds.

    Of a training that was stopped early, XGBoost's wrapper takes the best ones, and so does this.
    """
    if library == "xgboost":
        booster = import_module(library).Booster(model_file=path)
        best, rounds = booster.attr("best_iteration"), booster.num_boosted_rounds()
        first = rounds if best is None else int(best) + 1
        return (booster if best is None else booster[:first]), (first, rounds)
    text = Path(path).read_text(encoding="utf-8")
    if re.search(r"\n(end of trees|feature.importances:)", text) is None:
        raise ValueError("its trees have no end")
    # With their sizes, trees are read in threads, where a fault ends the process.
    sizes = "".join(re.findall(r"\ntree_sizes=(.*)", text)).split()
    booster = import_module(library).Booster(model_str=re.sub(r"\ntree_sizes=.*", "", text))
    if sizes and booster.num_trees() != len(sizes):
        raise ValueError(f"{booster.num_trees()} of {len(sizes)} trees are left")
    return booster, (0, 0)


def _result(library: str, path: str, rows: str | None = None) -> dict[str, Any]:
    """Return the dump of a file, or what it predicts of the rows of another file."""
    try:
        booster, rounds = _opened(library, path)
        if rows is not None:
            return {"answers": answers_of(booster, import_module("numpy").load(rows)).tolist()}
        if library == "xgboost":
            return {"dump": of_xgboost(booster), "rounds": rounds}
        return {"dump": of_lightgbm(booster)}
    except Exception as error:  # each library has errors of its own
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return {"error": lines[0][:200]}


if __name__ == "__main__":
    # Without these a process begins in a third of the time, and the loaders do not need them.
    absent: dict[str, Any] = dict.fromkeys(("pandas", "sklearn", "matplotlib", "pyarrow"))
    sys.modules.update(absent)
    if sys.platform != "win32":
        resource = import_module("resource")  # seconds of a processor, on busy machines too
        resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[-1]),) * 2)
    Path(sys.argv[1]).write_text(json.dumps(_result(*sys.argv[2:-1])), encoding="utf-8")
