"""From words of synthetic voices to firmware that hears one of them in a stream of samples.

A toy: the voices are those of espeak-ng (Debian: ``apt-get install espeak-ng``), so that the
figures say nothing of people. Trained on 60 clips among words that sound alike, it heard 26 of 30
by other voices. With recordings of your own the commands are the same.

Run it with ``python examples/words.py [FOLDER]``. It writes to FOLDER (default: ``words-firmware``)

* ``train``, ``new``: clips of *computer*, of other words and of sentences, by other voices each;
* ``lamp.tkm``, ``events.tkm``: the model, and the one whose threshold was chosen on ``new``;
* ``lib``: a library of C that takes samples one at a time.

``--babble FOLDER`` writes sentences of all voices alone, as background for a word of your own.
``--words N`` takes so many clips of the word (default: 60), ``--epochs N`` is for trials.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from math import gcd
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import wavfile
from scipy.signal import resample_poly

RATE, WORD = 16000, "computer"
ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-029")
VARIANTS = ("m1", "m2", "m3", "m4", "m5", "m6", "m7", "f1", "f2", "f3", "f4", "f5")
OTHERS = (
    *("commuter", "compute", "competitor", "pewter", "computing", "jupiter", "contributor"),
    *("window", "kitchen", "morning", "seven", "weather", "music", "hello", "tomorrow", "rooster"),
)
NOUNS = ("my neighbour", "the train to the coast", "a cup of tea", "this old garden", "the news")
VERBS = ("arrives before", "reminds me of", "has nothing to do with", "is later than", "comes with")


def spoken(text: str, voice: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """Let a voice say something, at a pitch and a speed of its own."""
    pitch, speed = int(rng.integers(30, 71)), int(rng.integers(120, 191))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "said.wav"
        how = ("-v", voice, "-p", str(pitch), "-s", str(speed), "-w", str(file))
        subprocess.run(["espeak-ng", *how, text], check=True)
        rate, samples = wavfile.read(file)
    common = gcd(rate, RATE)
    return np.asarray(resample_poly(samples / 32768, RATE // common, rate // common))


def recorded(sound: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int16]:
    """Record a sound in a room: silence before and after it, some gain, and noise."""
    before, after = rng.integers(RATE // 4, RATE, 2)
    whole = np.pad(sound * rng.uniform(0.2, 0.9), (before, after))
    whole += rng.normal(0, 10 ** rng.uniform(-4, -2.5), whole.size)
    return np.asarray(np.clip(whole * 32767, -32768, 32767).astype(np.int16))


def sentence(rng: np.random.Generator) -> str:
    """Make up a sentence."""
    said = [str(rng.choice(NOUNS)) + " " + str(rng.choice(VERBS)) for _ in range(3)]
    return ", ".join(said) + " " + str(rng.choice(OTHERS))


def record(folder: Path, texts: list[str], voices: list[str], rng: np.random.Generator) -> None:
    """Write a clip of each text, by the voices in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        voice = voices[number % len(voices)]
        sound = recorded(spoken(text, voice, rng), rng)
        wavfile.write(folder / f"{voice}_{number:03}.wav", RATE, sound)


def make_data(folder: Path, n: int) -> None:
    """Write clips to train on, and others by other voices."""
    rng = np.random.default_rng(0)
    voices = [f"{accent}+{variant}" for accent in ACCENTS for variant in VARIANTS]
    voices = [voices[at] for at in rng.permutation(len(voices))]
    for part, those, share in (("train", voices[:40], 1), ("new", voices[40:], 2)):
        others = [str(rng.choice(OTHERS)) for _ in range(n // share)]
        record(folder / part / WORD, [WORD] * (n // share), those, rng)
        record(folder / part / "other", others, those, rng)
        record(folder / part / "speech", [sentence(rng) for _ in others], those, rng)


def tinykernel(*arguments: object) -> None:
    """Show a command, and run it."""
    words = [str(each) for each in arguments]
    print("$ tinykernel", *words, flush=True)
    subprocess.run([sys.executable, "-m", "tinykernel", *words], check=True)


def main() -> None:
    """Make the clips, train, calibrate and export."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("words-firmware"))
    parser.add_argument("--babble", type=Path, help="write sentences alone to this folder")
    parser.add_argument("--words", type=int, default=60, help="clips of the word (default: 60)")
    parser.add_argument("--epochs", type=int, help="fewer are faster and worse")
    given = parser.parse_args()
    if shutil.which("espeak-ng") is None:
        sys.exit("examples/words.py: needs espeak-ng; apt-get install espeak-ng")
    if given.babble is not None:
        rng = np.random.default_rng(1)
        voices = [f"{accent}+{variant}" for accent in ACCENTS for variant in VARIANTS]
        record(given.babble, [sentence(rng) for _ in voices], voices, rng)
        print(f"{given.babble}: sentences of {len(voices)} voices")
        return
    folder = given.folder
    make_data(folder, given.words)
    data = ("--window", "1s", "--set", "background=other,speech", "--budget", "30KB")
    epochs = () if given.epochs is None else ("--set", f"epochs={given.epochs}")
    model, events = folder / "lamp.tkm", folder / "events.tkm"
    tinykernel("train", folder / "train", *data, *epochs, "-q", "-o", model)
    tinykernel("calibrate", model, folder / "new", "--false-alarms", "1/h", "-o", events)
    library = ("--name", "lamp", "--format", "library", "-o", folder / "lib")
    tinykernel("export", events, *library)


if __name__ == "__main__":
    main()
