"""Values that are a function of sums: links of counts and amounts."""

from dataclasses import replace

import numpy as np

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.columns import ModelColumns, lacking_rows
from tinykernel.model.answers import Values
from tinykernel.model.integer import IntegerModel

#: Sums of logarithms times this are exponents of 2.
PER_LOG = 1 / np.log(2)
_LARGEST_POWER = 100  # of 2, of the values of X
# From the smallest to the largest value, in powers of 2: with half a unit of the fixed point, the
# smallest has the relative error that the table has.
_WIDEST = 13


def curved(model: IntegerModel, curve: str, columns: ModelColumns) -> IntegerModel:
    """Return a model whose values are 2 to the power of its sums, or their signed squares.

    The largest value of X has two bits above it; beyond four times that, values saturate. Without X
    it is the largest that leaves add up to.
    """
    if not curve:
        return model
    assert isinstance(model.answers, Values)
    bits = model.answers.shift
    if columns.rows is None:
        parts = [np.array(part.reach(model.quantized_grid)) for part in model.readout.parts]
        scores = model.readout.offset + np.sum(parts, axis=0)
    else:
        scores = model.scores(columns.rows)
    sums = np.ldexp(scores.astype(np.float64), -bits)
    if columns.rows is None and (curve != "power" or np.ptp(sums) > _WIDEST):
        raise lacking_rows("model with a link, such as exp,", "its values")
    top = sums.max() if curve == "power" else 2 * np.log2(max(np.abs(sums).max(), 1e-30))
    shift = 28 - int(np.clip(np.ceil(top), -_LARGEST_POWER, _LARGEST_POWER))
    fraction = bits if curve == "power" else 2 * bits - shift
    if not (1 <= fraction <= 31 if curve == "power" else 0 <= fraction <= 62):
        raise ConvertError(
            f"convert: sums of up to {np.abs(sums).max():.3g} are too large or too small for "
            f"a {curve}; let it teach: tinykernel.train(X, y, teacher=...)"
        )
    answers = Values(model.answers.names, shift, curve, fraction)
    return replace(model, answers=answers, decision_scale=answers.unit)
