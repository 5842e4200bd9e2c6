"""Options that do not fit the rows."""

import numpy as np
import pytest

from tinykernel import Classifier, TinykernelError


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({"window_shape": (5, 2)}, (40, 9), "window_shape: 5 x 2 makes 10 values"),
        ({"window_shape": (8, 2)}, (40, 16), "windows of 8 samples are too short"),
        ({"image_shape": (2, 8)}, (40, 16), "image_shape: images of 2 x 8; give 4 to 192 rows"),
        ({"image_shape": (4, 4), "window_shape": (8, 2)}, (40, 16), "give one of them"),
        ({"augment": {"affine": 1}}, (40, 16), "affine is not for rows"),
        ({"augment": {"tilt": 1}}, (40, 16), "'tilt' is not known"),
        ({"augment": {"flip": 2}, "image_shape": (4, 4)}, (40, 16), "flip.*from 0 to 1"),
        ({"augment": {"rotate": 0.1}}, (40, 16, 4), "rotate turns three channels at a time"),
        ({"n_kernels": 4}, (40, 16), "n_kernels: give signals"),
        ({"sigma": 2.0}, (40, 32, 2), "sigma: only for components"),
        ({"epochs": 9, "model": "kernels"}, (40, 32, 2), "epochs: not an option of signals"),
        ({"sigma": 2.0, "image_shape": (4, 4)}, (40, 16), "sigma: only for components"),
        ({"model": "linear", "sigma": 0.2}, (40, 16), "sigma: only for components"),
        ({"hop": 4}, (40, 16), "hop: give signals"),
        ({"spectrum": "on"}, (40, 16), "spectrum: give signals"),
        ({"model": "linear", "linear": "off"}, (40, 16), "opposite of model=linear"),
        (
            {"image_shape": (4, 4), "n_components": 64},
            (40, 16),
            "n_components: only for components",
        ),
        ({"n_components": {"compact": 4}}, (40, 16), "the layout by layout"),
        ({"n_components": 0}, (40, 16), 'give model="linear"'),
        ({"n_channels": 4}, (40, 16), "only for convolutions"),
        ({"model": "kernels"}, (40, 16), "kernels is not for tables; give components"),
        ({"model": "trees", "image_shape": (4, 4)}, (40, 16), "give chains, separable"),
        ({"window_shape": (8, 2)}, (40, 9, 2), "but"),
        ({"image_shape": (4, 256), "n_channels": 2}, (40, 1024), "give 4 to 192 rows"),
    ],
)
def test_what_does_not_fit_is_refused(options, shape, message):
    """Protects that no option is ignored and every shape is checked."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 200, shape).astype(np.uint8), np.arange(shape[0]) % 2
    with pytest.raises(TinykernelError, match=message):
        Classifier(**options).fit(X, y)
