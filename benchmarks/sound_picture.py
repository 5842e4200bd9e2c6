"""Draw the way from samples to a decision, of one recording and a model's own integers.

python benchmarks/sound_picture.py words.tkm words/open/11_1.wav docs/images/sound.png
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from tinykernel import load
from tinykernel.data.wav import read_wav
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.spectrum.spec import Spectrum

_BLUE, _GREY = "#4e79a7", "#bbbbbb"


def draw(model_path: Path, sound: Path, output: Path) -> None:
    """Draw samples, levels of bands and scores of the first window of a sound."""
    model = as_integer_model(load(model_path))
    samples, rate = read_wav(sound)
    window = samples[: model.input.rows]
    row = np.pad(window, ((0, model.input.rows - len(window)), (0, 0))).reshape(1, -1)
    stage = model.find(Spectrum)
    levels = stage.run(row, model.input).reshape(-1, stage.n_bands)
    scores = model.scores(row)[0]
    seconds = model.input.rows / rate
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9, 2.4), width_ratios=(3, 3, 2))
    left.plot(np.arange(row.size) / rate, row[0], color=_BLUE, linewidth=0.4)
    left.set(title=f"{row.size} samples", xlim=(0, seconds), xlabel="s", yticks=[])
    middle.imshow(levels.T, origin="lower", aspect="auto", extent=(0, seconds, 0, stage.n_bands))
    middle.set(title=f"{len(levels)} x {stage.n_bands} levels, 0 to 255", xlabel="s", yticks=[])
    middle.set_ylabel("band")
    best = scores.argmax()
    places = np.arange(len(scores))
    right.barh(places, scores, color=[_BLUE if i == best else _GREY for i in places])
    right.set_yticks(places, map(str, model.classes), fontsize=7)
    right.invert_yaxis()
    right.set(title=f"scores: {model.classes[best]}", xticks=[0])
    right.axvline(0, color="black", linewidth=0.5)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(output, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "sound", "output"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    draw(given.model, given.sound, given.output)
