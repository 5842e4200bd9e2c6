"""ONNX files: what changes an answer and is not read is refused, and what is damaged."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.tools import run, succeeded
from tests.conversion.test_onnxtrees import attributes
from tests.optional import import_tool
from tests.refusals import SAID, refused
from tinykernel.base.errors import ConvertError, FormatError, TinykernelError
from tinykernel.conversion.models import convert
from tinykernel.conversion.networks.onnx import of_onnx

pytestmark = pytest.mark.usefixtures("page")

onnx = import_tool("onnx")
import_tool("onnx.reference")
node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(12, 3, 6, 6)).astype(np.float32)
SMALL = {
    "k": _RNG.normal(size=(4, 3, 3, 3)),
    "b": _RNG.normal(size=4),
    "g": np.full(4, 0.7),
    "w": _RNG.normal(size=(4, 2)),
    "c": _RNG.normal(size=(1, 2)),
    "shape": np.array([0, -1]),
}
CONV = node("Conv", ["x", "k", "b"], ["v"], name="/0/Conv")
NORM = node("BatchNormalization", ["v", "g", "g", "g", "g"], ["n"])
POOL = node("GlobalAveragePool", ["r"], ["p"])
SIDE_BY_SIDE = {"kernel_shape": [4, 4], "strides": [4, 4]}
ROWS = node("Reshape", ["p", "shape"], ["f"])
CHAIN = [CONV, NORM, node("Relu", ["n"], ["r"]), POOL, ROWS, node("Gemm", ["f", "w", "c"], ["y"])]


def _file(nodes, path, sizes=X.shape[1:], output="y", opset=17, arrays=SMALL):
    """Write a graph."""
    tensors = [
        onnx.numpy_helper.from_array(a if a.dtype.kind in "iu" else a.astype(np.float32), name)
        for name, a in arrays.items()
    ]
    ends = info("x", onnx.TensorProto.FLOAT, ["n", *sizes]), info(output, 1, ["n", None])
    graph = onnx.helper.make_graph(nodes, "net", [ends[0]], [ends[1]], tensors)
    versions = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    file = path / "net.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=versions, ir_version=8), file)
    return file


def _changed(at, *new):
    """Return the chain with other nodes in the place of one."""
    return [*CHAIN[:at], *new, *CHAIN[at + 1 :]]


@pytest.mark.parametrize(
    "nodes",
    [
        _changed(0, node("Conv", ["x", "k"], ["v"], auto_pad="SAME")),
        _changed(0, node("Conv", ["x", "k"], ["v"], dilations=[1, 2])),
        _changed(0, node("Conv", ["x", "k"], ["v"], later=1)),
        _changed(0, node("Conv", ["x", "k"], ["v"], domain="mine")),
        _changed(1, node("BatchNormalization", [*"vgggg"], ["n"], training_mode=1)),
        _changed(1, node("BatchNormalization", [*"vgggg"], ["n"], spatial=0)),
        _changed(1, node("Add", ["v", "g"], ["n"])),
        _changed(1, node("Softmax", ["v"], ["n"])),
        _changed(3, node("AveragePool", ["r"], ["p"], kernel_shape=[4, 4], ceil_mode=1)),
        _changed(3, node("AveragePool", ["r"], ["p"], kernel_shape=[4, 4])),
        _changed(3, node("ReduceMean", ["r"], ["p"], axes=[1, 2])),
        _changed(4, node("Flatten", ["p"], ["f"], axis=2)),
        _changed(4, node("Squeeze", ["p"], ["f"], axes=[2])),
        _changed(5, node("Gemm", [*"fwc"], ["y"], transA=1)),
        _changed(5, node("Gemm", [*"fwk"], ["y"])),
        [*CHAIN[:5], node("Gemm", [*"fwc"], ["z"]), node("ArgMax", ["z"], ["y"])],
        [*CHAIN[:5], node("Gemm", [*"fwc"], ["z"]), node("Softmax", ["z"], ["y"], axis=0)],
        _changed(2, node("Mul", ["n", "v"], ["r"])),
        _changed(1, node("BatchNormalization", [*"xgggg"], ["n"])),
        _changed(1, node("BatchNormalization", [*"qgggg"], ["n"])),
        _changed(0, node("Conv", ["x", "q"], ["v"], name="a")),
        _changed(2, node("Dropout", ["n", "b", "b"], ["r"])),
        [*CHAIN[:1], node("Relu", ["v"], ["y"]), *CHAIN[1:]],
    ],
)
def test_what_changes_an_answer_is_refused(nodes, tmp_path):
    """Attributes that were not read, other axes, branches, domains and modes of training."""
    file = _file(nodes, tmp_path)
    refused(TinykernelError, convert, file, X, task="classes")


LEVELS = {"s": np.float32(0.05), "z": np.uint8(128), "l": _RNG.integers(-99, 99, (4, 3, 3, 3))}
LEVELS["l"] = LEVELS["l"].astype(np.int8)
LEVELS |= {"t": np.full(4, 0.01), "o": np.zeros(4, np.int8)}
QUANTIZED = [
    node("QuantizeLinear", ["x", "s", "z"], ["1"]),
    node("DequantizeLinear", ["1", "s", "z"], ["2"]),
    node("DequantizeLinear", ["l", "t", "o"], ["3"], axis=0),
    node("Conv", ["2", "3", "b"], ["4"]),
    node("QuantizeLinear", ["4", "s", "z"], ["5"]),
    node("DequantizeLinear", ["5", "s", "z"], ["v"]),
    *CHAIN[1:],
]
BAD = {
    "operator": (CHAIN[:2] + [node("Mish", ["n"], ["r"])] + CHAIN[3:], {}),
    "function of no stage": (CHAIN[:2] + [node("HardSigmoid", ["n"], ["r"])] + CHAIN[3:], {}),
    "NaN": (CHAIN, {"k": np.full((4, 3, 3, 3), np.nan)}),
    "infinity": (CHAIN, {"b": np.full(4, np.inf)}),
    "variance below 0": (CHAIN, {"g": np.full(4, -1.0)}),
    "channels": (CHAIN, {"k": np.ones((4, 2, 3, 3))}),
    "kernel above the image": (CHAIN, {"k": np.ones((4, 3, 9, 9))}),
    "offsets": (CHAIN, {"b": np.ones(3)}),
    "columns": (CHAIN, {"w": np.ones((5, 2))}),
    "no scale": ([node("QuantizeLinear", ["x", "q", "z"], ["1"]), *QUANTIZED[1:]], {}),
    "scale of 0": (QUANTIZED, {"s": np.float32(0)}),
    "scale of NaN": (QUANTIZED, {"s": np.float32(np.nan)}),
    "scale of each position": (QUANTIZED, {"s": np.ones(6)}),
    "16 bits": (QUANTIZED, {"z": np.int16(0)}),
    "weights without a scale": (QUANTIZED, {"t": np.zeros(4)}),
    "weights below a scale of 0": (QUANTIZED, {"t": np.full(4, -1.0)}),
    "weights in blocks": (QUANTIZED, {"t": np.ones((4, 1, 1, 1))}),
    "weights of nine bits": (QUANTIZED, {"o": np.full(4, 120, np.int8)}),
    "weights far from levels": (QUANTIZED, {"t": np.full(4, 1e9)}),
    "levels as values": ([*QUANTIZED[:3], node("Conv", ["1", "3", "b"], ["4"])], {}),
    "levels of others": (
        [*QUANTIZED[:5], node("DequantizeLinear", ["5", "s2", "z"], ["v"]), *CHAIN[1:]],
        {"s2": np.float32(0.1)},
    ),
    "dynamic": ([node("DynamicQuantizeLinear", ["x"], ["1", "2", "3"]), *CHAIN], {}),
    "recurrent": ([node("GRU", ["x", "k", "k"], ["v"]), *CHAIN[1:]], {}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_line_and_writes_nothing(name, tmp_path):
    """Operators, shapes, numbers and levels without sense."""
    nodes, arrays = BAD[name]
    file = _file(nodes, tmp_path, arrays=SMALL | LEVELS | arrays)
    refused(TinykernelError, convert, file, X, task="classes")
    np.savez(tmp_path / "rows.npz", X=X)
    refusal = run("convert", file, "--data", tmp_path / "rows.npz", "-o", tmp_path / "net.tkm")
    assert refusal.exit_code == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["net.onnx", "rows.npz"]


@pytest.mark.parametrize(
    "change",
    [
        _changed(0, node("Conv", ["x", "k"], ["v"], auto_pad="VALID", kernel_shape=[3, 3])),
        _changed(0, node("Conv", ["x", "k", "b"], ["v"], pads=[0, 1, 2, 0], strides=[2, 1])),
        _changed(3, node("ReduceMean", ["r"], ["f"], axes=[-1, 2], keepdims=0))[:4] + CHAIN[5:],
        _changed(3, node("MaxPool", ["r"], ["p"], **SIDE_BY_SIDE, storage_order=1)),
        _changed(4, node("Squeeze", ["p"], ["f"], axes=[2, 3])),
        _changed(4, node("Flatten", ["p"], ["f"], axis=-3)),
        _changed(5, node("Gemm", [*"fwc"], ["y"], alpha=0.5, beta=-2.0)),
        _changed(1, node("BatchNormalization", [*"vgggg"], ["n"], epsilon=0.5, momentum=0.1)),
        _changed(2, node("Clip", ["n"], ["r"], min=0.0, max=1.5)),
    ],
)
def test_what_is_read_is_what_the_reference_computes(change, tmp_path):
    """`convert` itself compares a few rows with the reference of ONNX."""
    version = min({"Clip": 10, "Squeeze": 12}.get(each.op_type, 17) for each in change)
    if version < 14:  # there the reference normalizes by the batch
        change[1] = node("Identity", ["v"], ["n"])
    file = _file(change, tmp_path, opset=version)
    network = of_onnx(file).ready(X, "values")
    model = onnx.load(file)
    for each in model.graph.node:  # VALID is no padding, which the reference before 1.21 mistakes
        others = [attribute for attribute in each.attribute if attribute.name != "auto_pad"]
        del each.attribute[:]
        each.attribute.extend(others)
    expected = onnx.reference.ReferenceEvaluator(model).run(None, {"x": X})[0]
    np.testing.assert_allclose(network.predict(X), expected, rtol=1e-3, atol=1e-4)


def test_a_second_output_is_refused(tmp_path):
    """The file does not say which one is meant."""
    file = _file(CHAIN, tmp_path)
    model = onnx.load(file)
    model.graph.output.append(info("r", onnx.TensorProto.FLOAT, None))
    onnx.save(model, file)
    refused(ConvertError, convert, file, X, task="classes")


def test_the_command_turns_rows_with_channels_last(tmp_path):
    """They were read as if channels came first; flat ones still do not say what they are."""
    file = _file(CHAIN, tmp_path)
    for name, rows in (("first", X), ("last", np.moveaxis(X, 1, -1)), ("flat", X.reshape(12, -1))):
        np.savez(tmp_path / f"{name}.npz", X=rows)
    line = ("convert", file, "--max-change", "1", "--data")
    for name in ("first", "last"):
        succeeded(*line, tmp_path / f"{name}.npz", "-o", tmp_path / f"{name}.tkm")
    assert (tmp_path / "first.tkm").read_bytes() == (tmp_path / "last.tkm").read_bytes()
    refusal = run(*line, tmp_path / "flat.npz", "-o", tmp_path / "flat.tkm")
    assert refusal.exit_code == 1
    assert "X is flat" in refusal.stderr


def test_values_that_the_reference_does_not_compute_are_refused(tmp_path, monkeypatch):
    """Whatever a reader overlooks is found by the values of a few rows."""
    from tinykernel.conversion.networks import sequence

    monkeypatch.setattr(sequence.FloatNetwork, "add_normalization", lambda *_: None)
    refused(ConvertError, convert, _file(CHAIN, tmp_path), X, task="classes")


def test_files_that_are_no_network_say_so(tmp_path):
    """An empty one has no 0 inputs; of 60 trees with Exp behind, each operator is named once."""
    empty = tmp_path / "empty.onnx"
    empty.touch()
    assert "inputs" not in refused(TinykernelError, convert, empty, X)
    tree = {"n_targets": 1, "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_modes": ["LEAF"]}
    tree |= {f"nodes_{name}": [0] for name in ("featureids", "truenodeids", "falsenodeids")}
    tree |= {f"target_{name}": [0] for name in ("treeids", "nodeids", "ids")}
    tree |= {"nodes_values": [0.0], "target_weights": [1.0], "domain": "ai.onnx.ml"}
    kinds = ["Exp", "Neg", "Abs", "Sin", "Cos", "Tan", "Log"]
    least = node("TreeEnsembleRegressor", ["x"], ["y"], **tree, aggregate_function="MIN")
    refused(ConvertError, convert, _file([least], tmp_path, [4]))
    nodes = [node("TreeEnsembleRegressor", ["x"], [f"t{i}"], **tree) for i in range(60)]
    nodes += [node(kinds[i % 7], [f"t{i}"], [f"e{i}"]) for i in range(60)]
    nodes += [node("Cast", ["e0"], ["y"], to=1)]
    message = refused(ConvertError, convert, _file(nodes, tmp_path, [4]))
    assert [message.count(kind) for kind in ("Exp", "Cast", "Tan")] == [1, 0, 0]


def _bytes_of(path):
    """Return files of the readers: a network, and a forest."""
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(2, max_depth=3, random_state=0).fit(*load_wine(return_X_y=True))
    trees = node(
        "TreeEnsembleClassifier",
        ["x"],
        ["y", "s"],
        domain="ai.onnx.ml",
        **attributes(forest, "class"),
    )
    return [
        _file(CHAIN, path).read_bytes(),
        _file([trees], path, [13], arrays={}).read_bytes(),
    ]


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Bytes of files that are converted as they are."""
    return _bytes_of(tmp_path_factory.mktemp("onnx"))


@settings(max_examples=60)
@given(
    which=st.integers(0, 1),
    places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_files_are_refused_in_a_line(which, places, originals, tmp_path_factory):
    """One to four bytes: a model or a sentence, never an error of Python, and soon."""
    data = bytearray(originals[which])
    for place, byte in places:
        data[int(place * (len(data) - 1))] = byte
    _survives(bytes(data), which, tmp_path_factory)


@settings(max_examples=60)
@given(data=st.data())
def test_damaged_numbers_are_refused_in_a_line(data, originals, tmp_path_factory):
    """The numbers of attributes, dimensions and tensors, and names, are any that the form takes."""
    which = data.draw(st.integers(0, 1))
    model = onnx.load_from_string(originals[which])
    whole = st.sampled_from([-(2**62), -2, -1, 0, 1, 2, 7, 255, 65536, 2**31, 2**40, 2**62])
    for _ in range(data.draw(st.integers(1, 4))):
        of = data.draw(st.sampled_from(list(model.graph.node)))
        if of.attribute and data.draw(st.booleans()):
            item = data.draw(st.sampled_from(list(of.attribute)))
            if item.ints:
                item.ints[data.draw(st.integers(0, len(item.ints) - 1))] = data.draw(whole)
            elif item.floats:
                place = data.draw(st.integers(0, len(item.floats) - 1))
                item.floats[place] = data.draw(st.floats(width=32))
            elif item.strings:
                item.strings[data.draw(st.integers(0, len(item.strings) - 1))] = data.draw(
                    st.sampled_from([b"LEAF", b"BRANCH_LEQ", b"BRANCH_LT", b"\xff", b""])
                )
            item.i = data.draw(whole)
        elif model.graph.initializer and data.draw(st.booleans()):
            tensor = data.draw(st.sampled_from(list(model.graph.initializer)))
            tensor.dims[data.draw(st.integers(0, len(tensor.dims) - 1))] = data.draw(whole)
            tensor.data_type = data.draw(
                st.sampled_from([tensor.data_type, 0, 1, 7, 8, 10, 16, 99])
            )
        else:
            names = [name for each in model.graph.node for name in (*each.input, *each.output)]
            of.input[0] = data.draw(st.sampled_from([*names, "", "nothing"]))
    _survives(model.SerializeToString(), which, tmp_path_factory)


def _survives(content, which, folders):
    """Convert what may be damaged: an error is one of ours, of a line, and comes soon."""
    file, rows = folders.mktemp("damaged") / "net.onnx", [X, None][which]
    file.write_bytes(content)
    begin, message = time.monotonic(), ""
    try:
        convert(file, rows, task="classes" if which == 0 else None, max_change=1.0)
    except TinykernelError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 600
    assert time.monotonic() - begin < 20


def test_external_weights_that_lack_are_one_line(tmp_path):
    """The file of weights beside a network was not copied."""
    file = _file(CHAIN, tmp_path)
    onnx.save(onnx.load(file), file, save_as_external_data=True, location="w", size_threshold=0)
    of_onnx(file).ready(X, "classes")
    (tmp_path / "w").unlink()
    refused(FormatError, convert, file, X, task="classes")
    SAID.clear()  # it has words of the library


def _of_one_sum(*nodes):
    """Return a scaler, one sum of four inputs, and nodes up to a label."""
    before = [
        node("Scaler", ["x"], ["q"], domain="ai.onnx.ml", offset=[1.0, -2, 3, 0], scale=[0.5]),
        node("MatMul", ["q", "w"], ["s"]),
    ]
    return [*before, *nodes, node("ArgMax", ["p"], ["y"], axis=1, keepdims=0)]


SIGMOID = [node("Sigmoid", ["s"], ["g"]), node("Sub", ["one", "g"], ["o"])]
NEGATIVE = [node("Mul", ["s", "less"], ["o"])]
ONE_SUM = {"w": _RNG.normal(size=(4, 1)), "one": np.ones(1), "less": -np.ones(1)}
ONE_SUM |= {"w3": _RNG.normal(size=(4, 3)), "third": np.full((200, 1), 0.3)}


@pytest.mark.parametrize(
    "nodes",
    [
        [*SIGMOID, node("Concat", ["o", "g"], ["p"], axis=1)],
        [*NEGATIVE, node("Concat", ["o", "s"], ["p"], axis=1)],
    ],
    ids=["sigmoid", "negative"],
)
def test_one_sum_of_two_classes_has_both_signs(nodes, tmp_path):
    """A Scaler and what skl2onnx writes behind one sum give the labels of the reference."""
    file, rows = tmp_path / "net.onnx", 3 * _RNG.normal(size=(200, 4)).astype(np.float32)
    file = _file(_of_one_sum(*nodes), tmp_path, [4], arrays=ONE_SUM)
    expected = onnx.reference.ReferenceEvaluator(str(file)).run(None, {"x": rows})[0]
    assert np.mean(convert(file, rows).predict(rows) != expected) <= 0.005
    assert 0 < expected.mean() < 1


@pytest.mark.parametrize(
    "nodes",
    [
        [*SIGMOID, node("Concat", ["g", "o"], ["p"], axis=1)],
        [SIGMOID[0], node("Sub", ["g", "one"], ["o"]), node("Concat", ["o", "g"], ["p"], axis=1)],
        [SIGMOID[0], node("Concat", ["third", "g"], ["p"], axis=1)],
        [node("Sigmoid", ["s"], ["p"])],
        [*NEGATIVE, node("Concat", ["s", "o"], ["p"], axis=1)],
        [*NEGATIVE, node("Concat", ["o", "s"], ["p"], axis=0)],
        [node("MatMul", ["q", "w3"], ["z"]), node("Sigmoid", ["z"], ["g"])]
        + [node("Sub", ["one", "g"], ["p"])],
    ],
)
def test_shares_in_another_order_are_refused(nodes, tmp_path):
    """The second of two classes is that of the larger sum, which another order exchanges."""
    sums = _of_one_sum(*nodes)
    chosen = [each for each in sums if "w3" not in str(nodes) or each.output[0] != "s"]
    file = _file(chosen, tmp_path, [4], arrays=ONE_SUM)
    refused(ConvertError, convert, file, _RNG.normal(size=(200, 4)).astype(np.float32))
