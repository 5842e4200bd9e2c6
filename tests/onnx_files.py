"""Files of ONNX that tests write."""

from typing import Any

import numpy as np


def save_network(onnx: Any, file: Any, nodes: Any, arrays: Any, sizes: Any) -> None:
    """Write a graph from x, rows of these sizes, to y: integers stay, others become float32."""
    tensors = [
        onnx.numpy_helper.from_array(a if a.dtype.kind in "iu" else a.astype(np.float32), name)
        for name, a in arrays.items()
    ]
    value = onnx.helper.make_tensor_value_info
    ends = value("x", 1, ["n", *sizes]), value("y", 1, ["n", None])
    graph = onnx.helper.make_graph(nodes, "net", [ends[0]], [ends[1]], tensors)
    versions = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=versions, ir_version=8), file)
