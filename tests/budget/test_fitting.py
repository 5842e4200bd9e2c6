"""tinykernel.train: the model fits, uses its budget, and what was found is kept."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.cli.tools import blobs
from tinykernel import (
    TernaryKernelClassifier,
    TernaryKernelNovelty,
    TinykernelError,
    report,
    train,
)
from tinykernel.budget import contenders, fitting, standins
from tinykernel.budget.standins import Asked
from tinykernel.codegen.targets import TARGETS
from tinykernel.measure.capacity import needed_bytes, refuse_less_than_code
from tinykernel.measure.limits import parse_limits
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.convolutions import Convolutions
from tinykernel.papers import PaperClassifier

QUICK = {"epochs": 2, "effort": "quick", "random_state": 0}
PAPER = {
    "method": PaperClassifier,
    "sigma": 8.0,
    "regularization": 0.1,
    "max_iter": 2,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def digits():
    """300 digits as bytes, with all extremes."""
    X, y = load_digits(return_X_y=True)
    X, y = X.astype(np.uint8), y
    rows = np.unique(np.concatenate([np.arange(300), X.argmax(axis=0)]))
    return X[rows], y[rows]


def test_a_model_fits_and_uses_the_budget(digits):
    """What is trained with the number found keeps to the budget, and little is left over."""
    X, y = digits
    found = train(X[y < 2], y[y < 2], budget="6KB", **QUICK)
    assert found.trainings == 1
    assert 0.9 * 6144 < found.memory.flash <= found.budget == 6144
    assert report(found.model, "cortex-m4").flash == found.memory.flash


def test_small_code_where_flash_is_short(digits):
    """Components get what fast code would take, unless time is limited or fast code asked for."""
    given = {**QUICK, "linear": "off", "target": "cortex-m4"}
    small, fast = (train(*digits, budget="3KB", code=c, **given) for c in ("auto", "fast"))
    assert small.model.find(Components).small_code
    assert not fast.model.find(Components).small_code
    assert small.classifier.n_components_ > 1.3 * fast.classifier.n_components_
    assert small.memory.flash <= 3072
    for budget in ("8KB", "flash=3KB,instructions=1M"):
        assert not train(*digits, budget=budget, **given).model.find(Components).small_code


@pytest.mark.slow
def test_more_than_32768_inputs_have_a_size():
    """One block of 65,536 components is as many as there can be; two of them are not tried."""
    X = np.random.default_rng(0).normal(size=(24, 33000)).astype(np.float32)
    y = np.arange(24) % 2
    found = contenders.sizes_that_fit(Asked.few(X, y, QUICK, limits=parse_limits("30KB")))
    assert found["n_components"] == {"linear4": 0}


def test_paper_fits_and_uses_the_budget(digits):
    """The same for the other method."""
    found = train(*digits, budget=6144, **PAPER)
    assert 0.9 * 6144 < found.memory.flash <= 6144
    with pytest.raises(TinykernelError, match="over the budget of 1000; give a larger budget"):
        train(*digits, budget=1000, **PAPER)


def test_without_a_search_the_layout_is_compact(digits):
    """effort="quick" with a budget once made short trainings all the same, to choose the layout."""
    assert train(*digits, budget="4KB", **QUICK).classifier.layout_ == "compact"


def test_layouts_that_are_searched(digits, monkeypatch):
    """Both are compared, each with a linear part and without."""
    found = _sizes(monkeypatch, *digits, "6KB")["n_components"]
    beside = [form for layout in ("compact", "phases") for form in (layout, f"{layout}+linear4")]
    assert list(found) == [*beside, "linear8", "linear4"]
    assert found["linear8"] == 0 < found["compact+linear4"] < found["compact"]


def test_default_budget(monkeypatch):
    """It is 30 KB; there is none with n_components, or for the host."""
    X, y = blobs(60, 0)
    monkeypatch.setattr(fitting, "sizes_that_fit", lambda *given: {"n_components": {"compact": 64}})
    assert train(X, y, **QUICK).budget == 30720
    free = train(X, y, n_components=64, **QUICK)
    assert free.budget is None
    assert free.memory.source == "estimate"
    assert train(X, y, n_components=64, target="host", **QUICK).memory is None


def test_inputs_keep_their_names():
    """Names given beside an array reach the integer model."""
    X, y = blobs(60, 0)
    found = train(X, y, n_components=64, feature_names=list("abcde"), **QUICK)
    assert found.model.feature_names == tuple("abcde")


@pytest.mark.parametrize("method", ["learned", PaperClassifier])
def test_a_model_over_the_budget_is_trained_again_with_less(monkeypatch, method):
    """Where the size was misjudged, the result still fits, and layout and sigma are kept."""
    X, y = blobs(120, 0)
    learned = method == "learned"
    size = {"windows": 640} if learned else 640
    monkeypatch.setattr(fitting, "sizes_that_fit", lambda *given: {"n_components": size})
    given = {"epochs": 2, "linear": "off"} if learned else {"max_iter": 2}
    found = train(X, y, budget="3KB", method=method, random_state=0, **given)
    assert found.trainings == 2
    assert 2400 < found.memory.flash <= 3072
    assert found.classifier.n_components_ < 640
    assert found.classifier.sigma is not None
    if learned:
        assert found.classifier.layout_ == "windows"
        assert found.classifier.effort == "quick"


def _always_over(monkeypatch, **attributes):
    """Measure every trained model as 100 bytes over its budget; return the components trained."""
    real_fit, rounds = TernaryKernelClassifier.fit, []

    def fit(self, *arguments, **named):
        real_fit(self, *arguments, **named)
        rounds.append(self.n_components_)
        for name, value in attributes.items():
            setattr(self, name, value)
        return self

    monkeypatch.setattr(TernaryKernelClassifier, "fit", fit)
    monkeypatch.setattr(fitting, "needed_bytes", lambda sizes: 3072 + 100)
    monkeypatch.setattr(fitting, "sizes_that_fit", lambda *given: {"n_components": 64})
    return rounds


def test_a_budget_that_is_never_met_ends(monkeypatch):
    """With 32 components there is nothing left to save: an error, and no endless loop."""
    rounds = _always_over(monkeypatch)
    with pytest.raises(TinykernelError, match="100 over the budget of 3072; give a larger budget"):
        train(*blobs(60, 0), budget="3KB", **QUICK)
    assert rounds == [64, 32]


def test_ctrl_c_is_not_answered_by_another_training(monkeypatch):
    """A model over the budget whose training was interrupted is not trained again."""
    rounds = _always_over(monkeypatch, interrupted_=True)
    with pytest.raises(TinykernelError, match="interrupted and is not repeated"):
        train(*blobs(60, 0), budget="3KB", **QUICK)
    assert rounds == [64]


def _linked_larger(monkeypatch, more):
    """Let the linked program take more bytes than its estimate and the margin."""

    def linked(model, target, limit=None, *, compiler="auto"):
        sizes = report(model, target, limit, compiler="none")
        more_flash = more if compiler == "auto" else 0
        return replace(sizes, flash=sizes.flash + more_flash)

    monkeypatch.setattr(fitting, "report", linked)
    monkeypatch.setattr(fitting, "sizes_that_fit", lambda *given: {"n_components": 192})


def test_a_linked_model_over_the_budget_is_an_error(monkeypatch):
    """A model of 30.4 KB for 30 KB is trained again, or the training fails.

    What was learned is kept, and without a linker nothing changes.
    """
    X, y = blobs(60, 0)
    _linked_larger(monkeypatch, 1300)
    assert train(X, y, budget="3KB", link=False, **QUICK).classifier.n_components_ == 192
    found = train(X, y, budget="3KB", **QUICK)
    assert (found.trainings, found.memory.fits) == (2, True)
    assert 0 < found.classifier.n_components_ < 192
    for number in ({}, {"n_components": 192}):
        _linked_larger(monkeypatch, 9000)
        with pytest.raises(TinykernelError, match=r"over the budget of 3072; "):
            train(X, y, budget="3KB", **number, **QUICK)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError("No space left on device")])
def test_a_training_survives_a_linker_that_fails(monkeypatch, fault):
    """Ctrl-C or a full disk while the trained model is linked costs the exact figure only."""

    def no_linker(model, target, limit=None, *, compiler="auto"):
        if compiler == "auto":
            raise fault
        return report(model, target, limit, compiler=compiler)

    monkeypatch.setattr(fitting, "report", no_linker)
    monkeypatch.setattr(fitting, "sizes_that_fit", lambda *given: {"n_components": 64})
    with pytest.warns(UserWarning, match="its size is an estimate"):
        found = train(*blobs(60, 0), budget="3KB", **QUICK)
    assert found.memory.source == "estimate"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"budget": "500"}, "no model for this data fits into 500 bytes"),
        ({"budget": "3KB", "n_components": 32768}, "32768 components needs at least"),
        ({"budget": "3KB", "n_components": {"windows": 32768}}, "32768 components needs at least"),
        ({"budget": "3KB", "n_components": 32768, **PAPER}, "use fewer n_components"),
        ({"budget": "3KB", "n_components": 65537}, "at most 65536"),
        ({"budget": "30 bananas"}, "is not a size"),
        ({"budget": "8KB", "target": "host"}, "host has no flash to measure"),
        ({"target": "cortex-m99"}, "cortex-m99"),
        ({"budget": "8KB", "n_kernels": 8}, "n_kernels: give a shape"),
        ({"budget": "8KB", "n_kernels": 8, **PAPER}, "n_kernels: not an option of this method"),
        ({"method": "x"}, "method: 'x' is not a class"),
        ({"budget": "8KB", "validation": ([], []), **PAPER}, "validation: this method takes none"),
    ],
)
def test_bad_values(monkeypatch, given, expected):
    """A bad value is refused before the long training."""
    monkeypatch.setattr(fitting, "_decisive", None)
    if "validation" in given:  # the search for the size once came first, which takes minutes
        monkeypatch.setattr(fitting, "sizes_that_fit", None)
    with pytest.raises(TinykernelError, match=expected):
        train(*blobs(60, 0), **given)


def test_a_budget_below_all_code_is_refused_without_a_search(monkeypatch):
    """A hundred bytes are refused before the search, on every core; the least models are above."""
    X, y = np.arange(40)[:, None].astype(np.int16), np.arange(40) // 20
    least = (
        TernaryKernelClassifier(model="tree", **QUICK).fit(X, y),
        TernaryKernelClassifier(n_components=0, **QUICK).fit(X, y),
        TernaryKernelNovelty(n_prototypes=1, false_alarms=0.5).fit(X),
    )
    monkeypatch.setattr(fitting.Asked, "few", None)
    for name in (name for name, row in TARGETS.items() if row.family != "host"):
        for model in least:
            refuse_less_than_code(needed_bytes(report(model, name, compiler="none")), name)
        with pytest.raises(TinykernelError, match="no model fits into 100 bytes"):
            train(X, y, budget=100, target=name)


def test_too_many_kernels_are_refused(digits):
    """A number of kernels that cannot fit is refused before the training."""
    with pytest.raises(TinykernelError, match="use fewer n_kernels"):
        train(*digits, budget="2KB", image_shape=(8, 8), n_kernels=192, random_state=0)


def test_convolutions_use_the_budget(digits):
    """A model of images gets as many channels as fit."""
    X, y = digits
    for size in (4096, 2048):
        found = train(X, y, budget=size, image_shape=(8, 8), **QUICK)
        assert 0.75 * size < found.memory.flash <= size
        assert found.model.input.shape == (8, 8)
        n_channels = found.model.find(Convolutions).n_channels
        assert list(found.classifier.n_kernels.values()) == [n_channels]


def test_few_windows_use_the_budget(monkeypatch):
    """Weights of 1024 kernels have 8 bits where there is room for as many."""
    rng, y = np.random.default_rng(0), np.arange(24) % 2
    X = rng.normal(0, 50, (24, 48)).cumsum(axis=1) + 9 * np.arange(48) * y[:, None]
    for budget, bits in (("16KB", 8), ("4KB", 4)):
        found = _sizes(monkeypatch, X.astype(np.int16), y, budget, window_shape=(48, 1))
        assert (found["n_kernels"] == 1024) == (bits == 8)
        assert found["linear"] == bits


def _sizes(monkeypatch, X, y, budget, **given):
    """Return what would be trained with."""
    seen = []

    def stop(method, parameters, *arguments, **named):
        seen.append(parameters)
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "fitted", stop)
    with pytest.raises(KeyboardInterrupt):
        train(X, y, budget=budget, random_state=0, **given)
    return seen[0]


@pytest.mark.slow
def test_a_spectrum_that_leaves_no_room_is_left_out(monkeypatch):
    """Vibrations at 2 KB were refused, though kernels on samples fit; then nothing told of it."""
    rng, y = np.random.default_rng(0), np.arange(24) % 2
    X = (1000 * rng.standard_normal((24, 1024, 1)) * (1 + y[:, None, None])).astype(np.int16)
    with pytest.warns(UserWarning, match="no spectrum: the budget leaves room for fewer than 16"):
        small = _sizes(monkeypatch, X, y, "2KB", rate=1000.0)
    assert small["spectrum"] == "off"
    assert "spectrum" not in _sizes(monkeypatch, X, y, "4KB", rate=1000.0)


def test_a_linear_part_where_components_do_not_fit(digits):
    """Where 32 components are too many, a linear part is trained, without tables of a scaler."""
    found = train(*digits, budget=1400, **QUICK)
    assert found.model.find(Components) is None
    assert found.model.find(Linear) is not None
    assert found.memory.flash <= 1400


def test_the_paper_within_a_limit_of_time():
    """It once ended in a TypeError: an option of code was handed on to a method without one."""
    found = train(*blobs(60, 0), budget="flash=6KB,time=1ms@16MHz", link=False, **PAPER)
    assert found.sizes.flash < 6144
    assert found.model.find(Components) is not None


def test_a_form_whose_size_is_not_known_leaves_the_others(digits, monkeypatch):
    """One estimate that was never measured once ended a training that had other forms."""
    X, y = digits

    def sizes(model, target):
        if model.find(Components) is None:
            raise TinykernelError("not measured")
        return report(model, target)

    monkeypatch.setattr(standins, "decisive_report", sizes)
    assert contenders._linear_sizes(Asked(X, y)) == {}
    found, least = contenders._forms(Asked(X, y, {"effort": "quick"}, parse_limits("6KB")))
    assert list(found) == ["compact"]
    assert least == 0


def test_a_linear_part_over_the_budget_becomes_narrower():
    """It once ended in an error although narrower weights would have fitted."""
    X, y = blobs(60, 0)
    made = TernaryKernelClassifier(n_components=0, epochs=1, random_state=0).fit(X, y)
    smaller = fitting._smaller(made, made.quantize(), 10, "auto")
    assert smaller == {"n_components": 0, "linear": 4}
    assert fitting._smaller(made, made.quantize(), 10, 8) is None


def test_seconds_count_from_the_start(monkeypatch):
    """The search for the size was once left out of the time."""
    clock = iter(range(1000))
    monkeypatch.setattr(fitting, "time", SimpleNamespace(perf_counter=lambda: next(clock)))

    def sizes(*given):
        for _ in range(100):
            next(clock)
        return {"n_components": 64}

    monkeypatch.setattr(fitting, "sizes_that_fit", sizes)
    assert train(*blobs(60, 0), **QUICK).seconds > 100


def test_a_number_of_components_of_unknown_size_is_trained(monkeypatch):
    """A size that is not known before the training is no reason to refuse it."""

    def unknown(*given, **named):
        raise TinykernelError("not measured")

    monkeypatch.setattr(contenders.capacity, "least_size", unknown)
    monkeypatch.setattr(fitting, "report", unknown)
    monkeypatch.setattr(fitting, "decisive_report", unknown)
    with pytest.warns(UserWarning, match="its size is not known"):
        found = train(*blobs(60, 0), budget="8KB", n_components=64, **QUICK)
    assert found.memory is None


def test_trees_of_images_are_refused_by_their_name():
    """The line names what was asked for, not what the budget adds."""
    X, y = load_digits(return_X_y=True)
    with pytest.raises(TinykernelError, match="model: only for tables"):
        train(X[:60], y[:60], budget="4KB", model="trees", image_shape=(8, 8), link=False)


def test_a_size_below_the_budget_is_trained(monkeypatch):
    """One kernel of 8 bits fits and is too few: its 2045 bytes do not exceed 2048."""
    found = iter([(1, 2045), (0, 2588), (0, 2613)])
    monkeypatch.setattr(contenders.capacity, "most_kernels", lambda *_: next(found))
    X = np.random.default_rng(0).normal(size=(20, 64, 1)).astype(np.float32)
    with pytest.raises(TinykernelError, match=r"about 2588 bytes; give a larger budget$"):
        train(X, np.arange(20) % 2, budget="2KB", random_state=0)
