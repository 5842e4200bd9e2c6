"""What a model file may hold: the classes, and what each of their fields must be."""

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.errors import FormatError
from tinykernel.model import Grid, IntegerModel
from tinykernel.model.answers import Decision, Events, Labels, Values
from tinykernel.model.permutation import Permutation
from tinykernel.model.readouts import PARTS, Readout
from tinykernel.model.record import PLAIN, Field
from tinykernel.model.stages import STAGES

#: Estimators that a file may hold, and where they are. They lie above this module.
CLASSIFIERS = {
    "Classifier": "tinykernel.estimator",
    "Regressor": "tinykernel.estimator",
    "TernaryKernelClassifier": "tinykernel.estimator",
    "TernaryKernelRegressor": "tinykernel.estimator",
    "PaperClassifier": "tinykernel.papers",
}
#: What takes the place of estimators with parameters that only older versions have, and
#: parameters that are gone.
SUCCESSORS = {"TernaryKernelClassifier": "Classifier", "TernaryKernelRegressor": "Regressor"}
GONE = {"convolutions", "noise", "scaler_scope", "tree_bytes", "tree_steps", "offset"}
_PIECES: tuple[type, ...] = (Decision, Events, Grid, Labels, Permutation, Readout, Values)
#: Records that a file may hold; their `FIELDS` say what is allowed.
CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (IntegerModel, *_PIECES, *STAGES, *PARTS)}
KINDS = {"IntegerModel": "integer"} | dict.fromkeys(CLASSIFIERS, "classifier")
#: How deep values may be nested.
DEEPEST = 20
Arrays = dict[str, NDArray[Any]]
FITTED = re.compile(r"[a-z][a-z0-9_]*_")
PARTS_OF_CLASSIFIERS = {"machine_": ("IntegerModel",), "decision_": ("Decision",)}


def is_record(field: Field) -> bool:
    """Say whether a field holds records."""
    return not field.dimensions and field.dtype != "label" and field.dtype not in PLAIN


def is_text(value: Any) -> bool:
    """Say whether a value is text that can be encoded."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:  # half of a surrogate pair, which no terminal can print
        return False


def check_fields(name: str, fields: dict[str, Any]) -> None:
    """Refuse fields of which a part of a model cannot be made."""
    known = {field.name: field for field in CLASSES[name].FIELDS}
    absent = known.keys() - fields.keys()
    missing = {key for key in absent if not (known[key].optional or known[key].later)}
    for key in sorted(missing) + sorted(fields.keys() - known.keys()):
        problem = "is unknown" if key in fields else "is missing"
        raise FormatError(f"damaged {name}: {key!a} {problem}; save the model again")


def check_classifier(fields: dict[str, Any], params: set[str]) -> None:
    """Check that the attributes of a classifier are those of its machine."""
    machine, labels = fields.get("machine_"), fields.get("classes_")
    if not isinstance(machine, IntegerModel):
        raise FormatError("damaged classifier: it holds no fitted machine")
    names = fields.get("feature_names_in_")
    is_column = isinstance(names, np.ndarray) and names.shape == (machine.n_inputs,)
    are_names = names is None or (is_column and all(map(is_text, names.tolist())))
    known = [c.item() if isinstance(c, np.generic) else c for c in machine.classes]
    listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
    wrong = {
        "classes_": isinstance(labels, list) or listed != (known or None),  # None of a regressor
        "n_features_in_": fields.get("n_features_in_") != machine.n_inputs,
        "feature_names_in_": not are_names,
    }
    for name in filter(wrong.get, wrong):
        raise FormatError(f"damaged classifier: {name} does not go with its machine")
    for name in fields.keys() - params:
        if not re.fullmatch("[a-z][a-z0-9_]*", name):
            raise FormatError(f"damaged classifier: it holds {name!a}")


def is_plain(value: Any, depth: int = DEEPEST) -> bool:
    """Say whether a value is finite JSON that a terminal can print."""
    if isinstance(value, dict):
        if not all(map(is_text, value)):
            return False
        value = list(value.values())
    if isinstance(value, list):
        return depth > 0 and all(is_plain(item, depth - 1) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int) or is_text(value)
