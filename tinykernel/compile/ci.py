"""The workflow by which a firmware repository checks its model on every commit."""

import io
import re
import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import ArrayLike

from tinykernel.base import files as resources
from tinykernel.base.checks import check_choice
from tinykernel.base.coding import Coding
from tinykernel.base.errors import OptionError
from tinykernel.base.files import package_version
from tinykernel.compile.targets import find_target
from tinykernel.model.file import to_bytes
from tinykernel.model.integer import IntegerModel

#: Where the file of a service belongs.
CI_SERVICES = {"github": ".github/workflows/model.yml"}
_DEFAULT_TARGET = "cortex-m4"


def render_ci(
    service: str,
    model: IntegerModel,
    files: Iterable[str],
    rows: ArrayLike,
    *,
    name: str,
    target: str | None,
    budget: str | int | None,
    coding: Coding | None = None,
) -> dict[str, bytes]:
    """Return the workflow that rebuilds, verifies and measures an export, and its files."""
    # `files` are the paths of the export, `rows` raw inputs (n_rows, n_inputs) to verify on.
    # Without a target it is cortex-m4, without a budget the chip's memory is the limit.
    check_choice("ci", service, tuple(CI_SERVICES))
    if budget is not None and not re.fullmatch(r"[\w.,=@ ]+", str(budget), re.ASCII):
        raise OptionError(
            f"budget: a workflow cannot check {budget!r}; give a size, as in {{budget}}",
            budget="8KB",
        )
    row = find_target(target or _DEFAULT_TARGET)
    on_chip = row.family != "host"
    # What comes with tinykernel[boards] compiles and runs ARM and RISC-V.
    emulated = on_chip and row.zig is not None and bool(row.machines)
    # The folders, or files at the top, of the generated C.
    paths = map(PurePosixPath, files)
    generated = [path for path in paths if path.name in (f"{name}.c", f"{name}.h")]
    text = (
        resources.templates()
        .get_template(f"ci/{service}.yml.j2")
        .render(
            version=package_version(),
            name=name,
            compared=sorted(
                {str(path if len(path.parts) == 1 else path.parent) for path in generated}
            ),
            verified=f"host,{row.name}" if emulated else "host",
            reported=row.name if on_chip else "",
            budget=shlex.quote(str(budget)) if budget else "",
        )
    )
    array = io.BytesIO()
    np.save(array, model.as_raw(rows))
    return {
        CI_SERVICES[service]: text.encode(),
        # Without the training, but with the coding.
        f"ci/{name}.tkm": to_bytes(model, {} if coding is None else {"coding": coding.written()}),
        "ci/rows.npy": array.getvalue(),
    }
