"""Coverage-guided fuzzing of the readers with atheris, where that is installed.

It needs CPython 3.11 to 3.13 on Linux. A batch begins with the seeds of the other parts, and lets
atheris choose what to change; the last line of a run counts these files. Without atheris it does
nothing: the other parts damage the same files by rules of their own.
"""

import importlib.util
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz.batch import ROOT, Batch, limit_memory
from tests.processes import captured

READERS = ("tkm", "pkl", "npz", "csv", "parquet", "wav", "track", "content")


def run(batch: Batch, size: int) -> None:
    """Give `size` files to the readers, to each of them as many."""
    if importlib.util.find_spec("atheris") is not None:
        for reader in READERS:
            _fuzz(batch, reader, -(-size // len(READERS)))


def _fuzz(batch: Batch, reader: str, size: int) -> None:
    """Run one reader `size` times, in a process of its own: atheris ends with it."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for index, data in enumerate(_seeds(reader)):
            (corpus / str(index)).write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzz.coverage", reader, str(corpus)]
        command += [f"-runs={size}", f"-seed={batch.seed + 1}", "-max_len=20000", "-timeout=20"]
        command += ["-rss_limit_mb=6000", f"-artifact_prefix={folder}/crash-"]
        done = captured(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            errors="replace",
        )
        # What atheris says it read; an input that ends it is the last one.
        read = [int(number) for number in re.findall(r"^#(\d+)\t", done.stderr, re.MULTILINE)]
        batch.counts["files by coverage"] += max(read, default=0)
        if done.returncode:
            found = sorted(Path(folder).glob("crash-*"))
            data = found[0].read_bytes() if found else None
            note = f"{reader}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
            batch.find("uncaught exceptions", note, data, f"-{reader}")


def _seeds(reader: str) -> list[bytes]:
    import pickle

    from tests.fuzz import data, models
    from tinykernel.model.file import _Pickled

    if reader in ("tkm", "content"):
        return models.seeds()
    if reader == "pkl":
        return [pickle.dumps(_Pickled(content), protocol=4) for content in models.seeds()]
    wanted = ".csv" if reader == "track" else f".{reader}"
    return [
        content
        for name, content, is_recording in data.seeds()
        if name.endswith(wanted) and is_recording == (reader in ("track", "wav"))
    ]


def _target(reader: str, folder: Path) -> Callable[[bytes], None]:
    """Return what atheris calls: anything but a refusal in one line gets out of it."""
    import numpy as np

    from tests.fuzz import data, models
    from tinykernel.base.errors import TinykernelError
    from tinykernel.model.file import load

    suffix = {"track": "csv", "content": "tkm"}.get(reader, reader)
    path = folder / f"file.{suffix}"

    def call(content: bytes) -> None:
        if reader == "content":
            seed = int.from_bytes(content[:8].ljust(8, b"\0"), "little")
            rng = np.random.default_rng(seed)
            content = models.mutate_content(models.seeds()[seed % len(models.seeds())], rng)
        path.write_bytes(content)
        try:
            result: Any = (
                load(path)
                if suffix in ("tkm", "pkl")
                else data.read(path, reader in ("track", "wav"))
            )
            del result
        except TinykernelError:
            pass

    return call


def main() -> None:
    import atheris

    warnings.simplefilter("ignore")
    limit_memory()
    reader = sys.argv[1]
    with atheris.instrument_imports(include=["tinykernel.model.file", "tinykernel.data"]):
        pass

    with tempfile.TemporaryDirectory() as folder:
        call = _target(reader, Path(folder))
        # What the first files import and compile took longer than a file may.
        for seed in sorted(Path(sys.argv[2]).iterdir()):
            call(seed.read_bytes())
        atheris.Setup([sys.argv[0], *sys.argv[2:]], call)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
