"""What scripts of others import."""

from __future__ import annotations

import pickle

import tinykernel


def test_names_of_earlier_versions_did_not_import() -> None:
    """Scripts and pickles that name modules of earlier versions go on working."""
    from tinykernel import oneclass, parity, regressor

    assert parity.verify is tinykernel.verify
    assert regressor.TernaryKernelRegressor is tinykernel.TernaryKernelRegressor
    assert oneclass.calibrate_one_class is not None
    named = pickle.loads(b"ctinykernel.oneclass\nTernaryKernelNovelty\n.")
    assert named is tinykernel.TernaryKernelNovelty
