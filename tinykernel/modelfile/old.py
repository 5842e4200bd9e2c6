"""Records of the formats 1 and 2, in which a model was not yet a chain of stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinykernel.model.answers.values import Values
from tinykernel.model.compat import LocalStage
from tinykernel.model.former import former_digest, integer_model
from tinykernel.model.record import Field
from tinykernel.model.stages.scale import Scale

#: What the fingerprints of these formats are.
digest = former_digest

# Void in a model without components.
_OF_COMPONENTS = (
    Field("diagonal", "int8", 2, since=1),
    Field("row_kept", "bool", 2, since=1),
    Field("scale", "uint8", 1, since=1),
    Field("start", "uint8", 1, since=1),
    Field("width", "uint8", 1, since=1),
    Field("weights", "int8", 2, since=1),
)
MAY_BE_VOID = frozenset(_OF_COMPONENTS)

#: Fields of the records that later formats do not have, or have others of.
FIELDS: dict[str, tuple[Field, ...]] = {
    "IntegerModel": (
        Field("n_features", "int"),
        Field("phase_shift", "int"),
        Field("decision_scale", "float"),
        Field("diagonal_kind", "str"),
        Field("feature_names", "str", many=True, optional=True),
        Field("classes", "label", many=True),
        Field("halve_first", "bool", many=True),
        Field("halve_second", "bool", many=True),
        Field("scaler", "InputScaler"),
        Field("permutation", "Permutation"),
        Field("sign", "int8", 1),
        *_OF_COMPONENTS,
        Field("multiplier", "int32", 1),
        Field("offset", "int32", 1),
        Field("linear", "int8", 2, optional=True),
        Field("linear_multiplier", "int32", 1, optional=True),
        Field("local", "LocalStage", optional=True),
        Field("values", "FixedPoint", optional=True),
        Field("decision", "Decision", optional=True),
        Field("small_code", "bool", optional=True),
        Field("prototypes", "int8", 2, optional=True),
    ),
    "LocalStage": (
        *(
            Field(name, "int")
            for name in ("height", "width", "channels", "level_shift", "average", "padding", "hop")
        ),
        Field("cells", "int", many=True),
        Field("scaler", "InputScaler"),
        Field("mix", "int8", 2),
        Field("taps", "int8", 3),
        Field("dilation", "uint8", 1),
        Field("channel", "uint8", 1),
        Field("threshold", "int32", 1),
    ),
    "InputScaler": Scale.FIELDS,
    "FixedPoint": Values.FIELDS,
}
MAKERS: dict[str, Callable[..., Any]] = {
    "IntegerModel": integer_model,
    "LocalStage": LocalStage,
    "InputScaler": Scale,
    "FixedPoint": Values,
}
