"""Eight converters on 24 models of the newest libraries: right, silently wrong, or refused.

Run it with ``python benchmarks/converters.py --write docs/results/converters.md``. It makes the
environments below by uv, which takes its own settings, such as UV_FIND_LINKS for a torch without
CUDA, and downloads a Python that is not on PATH. They are temporary, or stay in ``--folder`` beside
what each converter printed: another run goes on from there. The converters run in
``peers/matrix.py``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _environment import describe_machine
from _page import print_page, rendered
from peers.matrix import MODELS, TIE

ROOT = Path(__file__).parents[1]
_LIBRARIES = ("scikit-learn==1.9.1", "lightgbm==4.7.0", "catboost==1.2.10")
#: By name: the Python, and what is installed. protobuf 7 breaks skl2onnx's histograms, emlearn
#: imports distutils. hummingbird-ml keeps onnx at 1.16.1; its Python is 3.11.
ENVIRONMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "newest": (
        "3.12",
        (
            *(*_LIBRARIES, "xgboost-cpu==3.4.1", "treelite==4.8.1", "tl2cgen==1.0.0"),
            *("skl2onnx==1.20.0", "onnxmltools==1.16.0", "onnxruntime==1.32.0", "protobuf==6.33.6"),
            *("m2cgen==0.10.0", "emlearn==0.23.2", "setuptools==80.9.0", "micromlgen==1.1.28"),
        ),
    ),
    "hummingbird": (
        "3.11",
        (*_LIBRARIES, "xgboost-cpu==3.2.0", "hummingbird-ml==0.4.12", "torch==2.13.0"),
    ),
}
#: By name in ``peers/matrix.py``: the title on the page.
PEERS = {
    "tinykernel": "here",
    "tl2cgen": "treelite, tl2cgen",
    "skl2onnx": "skl2onnx",
    "onnxmltools": "onnxmltools",
    "hummingbird": "hummingbird",
    "m2cgen": "m2cgen",
    "emlearn": "emlearn",
    "micromlgen": "micromlgen",
}


def _python(name: str, folder: Path) -> Path:
    """Return the interpreter of an environment, which is made if it is not there."""
    version, packages = ENVIRONMENTS[name]
    python = folder / name / "bin" / "python"
    if not python.exists():
        uv = str(Path(sys.executable).with_name("uv"))
        own = ("-e", str(ROOT)) if name == "newest" else ()
        subprocess.run([uv, "venv", "--python", version, folder / name], check=True)
        subprocess.run([uv, "pip", "install", "--python", python, *packages, *own], check=True)
    return python


def outcomes(peer: str, folder: Path) -> list[dict[str, Any]]:
    """Return what became of each model."""
    file = folder / f"{peer}.jsonl"
    file.touch()
    environment = "hummingbird" if peer == "hummingbird" else "newest"
    while (known := len(file.read_text().splitlines())) < len(MODELS):
        python = _python(environment, folder).absolute()
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        with file.open("a") as stream:
            subprocess.run(
                [python, "-W", "ignore", ROOT / "benchmarks/peers/matrix.py", peer, str(known)],
                stdout=stream,
                env=os.environ | {"OMP_NUM_THREADS": "1", "PATH": path},
            )
            if len(file.read_text().splitlines()) == known:
                stream.write(json.dumps({"outcome": "refused", "why": "ends the process"}) + "\n")
    return list(map(json.loads, file.read_text().splitlines()))


def page(folder: Path) -> Iterator[str]:
    """Yield the lines of the page."""
    of_peers = {title: outcomes(peer, folder) for peer, title in PEERS.items()}
    rows = []
    for title, *each in zip(MODELS, *of_peers.values(), strict=True):
        cells = (
            f"**wrong**: {one['why']}" if one["outcome"] == "wrong" else one["outcome"]
            for one in each
        )
        rows.append([title, *cells])
    sums = [
        [str(sum(one["outcome"] == outcome for one in each)) for each in of_peers.values()]
        for outcome in ("right", "wrong", "refused")
    ]
    rows.append(["**right, wrong, refused**", *map(", ".join, zip(*sums, strict=True))])
    return rendered(
        "converters",
        peers=list(of_peers),
        rows=rows,
        refused=[
            (title, one["why"])
            for title, one in zip(MODELS, of_peers["here"], strict=True)
            if one["outcome"] != "right"
        ],
        environments=ENVIRONMENTS,
        tie=TIE,
        machine=describe_machine(),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keeps environments and what was printed")
    parser.add_argument("--write", type=Path, help="file for the page")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        print_page(page(arguments.folder or Path(temporary)), arguments.write)
