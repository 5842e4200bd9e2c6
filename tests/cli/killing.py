"""End commands while they write: python -m tests.cli.killing FOLDER SEED; prints JSON lines.

The command line is imported once and forked for each run. Each command has two forms, which write
different things to one place. They end in all ways: by SIGKILL at a random moment and before
changes of files, by a signal in the middle of a file, and by a disk on which no file can grow
beyond 400 bytes.
"""

from __future__ import annotations

import json
import os
import pkgutil
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import tinykernel
from tinykernel.cli import app
from tinykernel.modelfile import load

#: How many changes of files to go on from one kill to the next: few commands write many.
_STRIDES = {"single": 11, "platformio": 70, "report": 99, "predict": 2, "tune": 99}
_LIMIT = 400
_CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "shutil.rmtree")
_CHANCE = os.O_WRONLY | os.O_RDWR


def commands(folder: Path) -> dict[str, list[list[str]]]:
    """Return the two forms of each command; what they write is in FOLDER/out."""
    model, data, out = str(folder / "gesture.tkm"), str(folder / "data.npz"), str(folder / "out")
    other = str(folder / "other.tkm")
    train = [
        "train",
        data,
        "-o",
        f"{out}/m.tkm",
        "--set",
        "n_components=64",
        "--set",
        "epochs=3",
        "--effort",
        "quick",
        "-q",
    ]
    tune = [
        "tune",
        data,
        "-o",
        f"{out}/m.tkm",
        "--set",
        "sizes=2KB",
        "--set",
        "folds=2",
        "--set",
        "epochs=2",
        "--set",
        "effort=quick",
        "--set",
        "jobs=1",
        "-q",
    ]
    export = ["export", model, "-o", f"{out}/project", "--force", "-q", "--format"]
    calibrate = ["calibrate", model, data, "-o", f"{out}/c.tkm", "-q", "--coverage"]
    report = ["report", model, "--html", f"{out}/page.html", "-q", "--target"]
    return {
        "single": [[*export, "single", "--name", name] for name in ("a", "b")],
        "platformio": [
            [*export, "platformio", "--target", core] for core in ("cortex-m4", "cortex-m0")
        ],
        "train": [[*train, "--seed", seed] for seed in ("1", "2")],
        "report": [[*report, core] for core in ("cortex-m0", "cortex-m4")],
        "calibrate": [[*calibrate, share] for share in ("50%", "90%")],
        "predict": [["predict", m, data, "-o", f"{out}/rows.csv", "-q"] for m in (model, other)],
        "proof": [["inspect", m, "--proof", f"{out}/proof.json"] for m in (model, other)],
        "tune": [
            [*tune, "--set", f"seed={seed}", "--set", f"journal={out}/.{seed}"]
            for seed in ("1", "2")
        ],
    }


def die_at(step: int, out: str) -> None:
    """Let this process end before it changes files under `out` for the given time."""
    left = [step]

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event not in _CHANGES or out not in str(given[0]):
            return
        if event == "open" and not given[2] & _CHANCE:
            return
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def start(command: list[str], said: Path, before: Callable[[], None]) -> int:
    """Fork a run; return its number."""
    process = os.fork()
    if process:
        return process
    status = 70
    try:
        with said.open("w") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        before()
        status = int(app(command, standalone_mode=False) or 0)
    except BaseException as error:
        os.write(2, repr(error).encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def state(out: Path) -> dict[str, Any]:
    """Return what users see: each file, and of a model what it computes."""
    return {
        name: load(path).fingerprint() if name.endswith(".tkm") else path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not (name := path.relative_to(out).as_posix()).startswith(".")
    }


def fill_disk(action: signal.Handlers) -> None:
    """Let no file of this process grow beyond a limit: an error, or by SIG_DFL the end."""
    signal.signal(signal.SIGXFSZ, action)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, _LIMIT))


class Command:
    """Two forms of a command, the states they lead to, and what was found."""

    def __init__(self, name: str, forms: list[list[str]], folder: Path) -> None:
        self.forms, self.out, self.said = forms, folder / "out", folder / "said.txt"
        self.found: dict[str, Any] = {"command": name, "runs": 0, "strange": [], "ended": []}
        self.known: list[dict[str, Any]] = []
        for _ in range(2):
            assert self.run() == 0, self.said.read_text()
            self.known.append(state(self.out))
        assert self.known[0] != self.known[1], self.said.read_text()

    def run(self, before: Callable[[], object] = lambda: None, seconds: float = 0) -> int:
        """Run the forms in turn, perhaps for some seconds only; return the status."""
        begin = time.monotonic()
        process = start(self.forms[self.found["runs"] % 2], self.said, before)
        if seconds:
            time.sleep(seconds)
            os.kill(process, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self.seconds = time.monotonic() - begin
        self.found["runs"] += 1
        self.found["ended"].append(status)
        return status

    def compare(self, known: list[dict[str, Any]]) -> None:
        """Note files that are none of those that a whole run leaves; a folder is whole, too."""
        now, all_names = state(self.out), self.known[0].keys() | self.known[1].keys()
        if any(name.startswith("project/") for name in all_names):
            strange = [] if now in known else ["project"]
        else:
            strange = [
                name
                for name in now.keys() | all_names
                if now.get(name) not in [one.get(name) for one in known]
            ]
        self.found["strange"] += [f"run {self.found['runs']}: {name}" for name in strange]


def end_in_all_ways(command: Command, stride: int, rng: random.Random) -> None:
    """Run a command that ends early, and once more to the end of its second form."""
    command.run(seconds=rng.random() * min(command.seconds, 1))
    command.compare(command.known)
    command.run(lambda: fill_disk(signal.SIG_DFL))
    command.compare(command.known)
    before = state(command.out)
    command.found["full"] = command.run(lambda: fill_disk(signal.SIG_IGN))
    command.found["said"] = command.said.read_text()
    command.compare([before])
    step = rng.randint(1, min(stride, 3))
    while command.run(partial(die_at, step, str(command.out))) == -signal.SIGKILL:
        command.compare(command.known)
        step += stride
    command.compare([command.known[1 - command.found["runs"] % 2]])
    command.found["left"] = [path.name for path in command.out.rglob(".tinykernel-*")]


def main(folder: Path, seed: int) -> None:
    """Do it, and print what was found."""
    for module in pkgutil.walk_packages(tinykernel.__path__, "tinykernel."):
        if not module.name.endswith("__main__"):
            import_module(module.name)  # once, and not in each run
    rng = random.Random(seed)
    for name, forms in commands(folder).items():
        (folder / "out").mkdir()
        command = Command(name, forms, folder)
        end_in_all_ways(command, _STRIDES.get(name, 4), rng)
        print(json.dumps(command.found), flush=True)
        (folder / "out").rename(folder / f"done-{name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
