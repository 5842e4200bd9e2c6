"""The C as a WebAssembly module: every kind of model answers in Node what it answers in Python."""

import json

import numpy as np

from tests.codegen.kinds import EVERY
from tests.processes import captured
from tests.random_models import random_raw
from tinykernel.compile.projects import export

# One of each way in which rows reach a model, and of each answer.
KINDS = (
    *("table, windows by row", "values, table", "one class, table", "trees", "signal, events"),
    *("table, calibrated: known", "signal, calibrated: novelty", "signal, numbers beside"),
    *("spectrum, planes", "frame, colours", "separable, colours, odd sides, strides"),
)
_PROGRAM = """
import { readFileSync } from "node:fs";
const wrong = [];
for (const { name, rows, scores } of JSON.parse(readFileSync(process.argv[2]))) {
  const model = await (await import(`./${name}/${name}.mjs`)).load();
  rows.forEach((row, i) => {
    if (String(model.predict(row).scores) !== String(scores[i])) wrong.push(`${name}, row ${i}`);
  });
}
console.log(JSON.stringify(wrong));
"""


def test_modules_answer_as_python_does(tmp_path, require_tool) -> None:
    """No score of any kind of model differs, at random rows and at the ends of types."""
    node = require_tool("node")
    require_tool("zig")
    cases = []
    for number, kind in enumerate(KINDS):
        model, name = EVERY[kind](), f"m{number}"
        export(model, None, tmp_path / name, name=name, format="web")
        rows = random_raw(model, 1, 40)
        rows = rows[np.isfinite(rows).all(axis=1)]
        scores = model.scores(rows).tolist()
        cases.append({"name": name, "rows": rows.tolist(), "scores": scores})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "main.mjs").write_text(_PROGRAM)
    done = captured([node, "main.mjs", "cases.json"], cwd=tmp_path, check=True)
    assert json.loads(done.stdout) == []
