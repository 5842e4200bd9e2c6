"""Kernels of signals: counts of windows, and a linear part on these."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tinykernel.base import progress
from tinykernel.base.errors import warn
from tinykernel.kinds.kind import Kind, Problem, Rounds, Spec, best_trial, candidate_of
from tinykernel.kinds.pace import Pace
from tinykernel.learn.choice import Candidate, Fold, join_folds
from tinykernel.learn.linear.normal_equations import MOST_INPUTS as MOST_COUNTS
from tinykernel.learn.linear.normal_equations import decide, fit_levels
from tinykernel.learn.linear.training import TrainingRows
from tinykernel.learn.loop import TrainingResult
from tinykernel.learn.loss import WIDE_TEMPERATURES
from tinykernel.learn.signals.options import KERNELS
from tinykernel.learn.signals.pool import SignalPool
from tinykernel.learn.signals.spectrum import spectrum_of
from tinykernel.learn.signals.training import (
    FEW_WINDOWS,
    RANKING_WINDOWS,
    KernelSettings,
    fit_windows,
    signal_plan,
    signal_scaler,
    some_rows,
)
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.offset.spec import NARROW, Offset
from tinykernel.pieces.spectrum.spec import Spectrum
from tinykernel.run.report import MOST_KERNELS

_DEFAULT, _DEFAULT_BITS = 256, 4
# Widths of weights on counts: with two bits there are more kernels, which pays where they are few.
# With eight bits, few windows are classified better only where as many kernels fit.
_BITS, _MOST_BITS, _FEW_KERNELS = (4, 2), 8, 16
# Cells that compete with one, and counts of each in the comparison.
_CELLS, _COMPARED_COUNTS = 16, 1024
# Cells take the room of kernels, of which a small budget has too few.
_LEAST_FLASH = 4096


@dataclass(frozen=True)
class KernelsSpec(KernelSettings, Spec):
    """Number of kernels, their cells and input, and the bits of the weights on their counts."""

    SIZE: ClassVar[str] = KERNELS.size

    def __str__(self) -> str:
        """Describe them in words."""
        on = " on a spectrum" if self.on_spectrum else ""
        cells = f" in {self.cells} cells" if self.cells > 1 else ""
        mean = ", without the mean" if self.without_mean else ""
        return f"{self.n_kernels} kernels{on}{cells}, weights of {self.bits} bits{mean}"


class KernelsKind(Kind[KernelsSpec]):
    """Kernels of signals."""

    about = KERNELS

    def specs(self, problem: Problem) -> list[KernelsSpec]:
        """Return each width of weights, on samples or on a spectrum."""
        options, linear = problem.options, problem.options.linear
        spectrum, why = problem.once(spectrum_of_kernels)
        if why:
            warn(why)
        bits: tuple[int, ...] = (_DEFAULT_BITS,) if linear == "auto" else (int(linear),)
        is_open = problem.limits is not None and options.n_kernels is None
        if is_open and linear == "auto":
            few = len(problem.data.X) <= FEW_WINDOWS and not problem.of_values
            bits = (_MOST_BITS, *_BITS) if few else _BITS
        inputs = [spectrum is not None]
        if spectrum is not None and options.spectrum == "auto" and is_open:
            inputs.append(False)
        return [
            self._spec(problem, width, on, settings)
            for on in inputs
            for settings in _layouts(problem, on)
            for width in bits
        ]

    def _spec(
        self, problem: Problem, bits: int, on_spectrum: bool, settings: KernelSettings
    ) -> KernelsSpec:
        """Return the spec of the most kernels."""
        options = problem.options
        n = options.n_kernels or _DEFAULT
        if problem.limits is not None and options.n_kernels is None:
            n = MOST_KERNELS["spectrum" if on_spectrum else "stream" if options.hop else "signal"]
            if not problem.of_values:  # fits of classes take no more counts
                n = min(n, (MOST_COUNTS - options.beside) // settings.cells)
        size = {"n_kernels": n, "bits": bits, "on_spectrum": on_spectrum}
        return KernelsSpec(**(vars(settings) | size))

    def contenders(self, sized: Sequence[KernelsSpec], problem: Problem) -> Sequence[KernelsSpec]:
        """Return the widest weights that leave enough kernels, on a spectrum if it has enough."""
        if problem.limits is None or problem.options.n_kernels is not None:
            return sized
        # The code of a spectrum takes about 900 bytes, which kernels on samples make better use of.
        on_spectrum = [spec for spec in sized if spec.on_spectrum]
        if max((spec.n_kernels for spec in on_spectrum), default=0) >= _FEW_KERNELS:
            sized = on_spectrum
        has_spectrum = problem.options.spectrum == "auto" and problem.once(spectrum_of_kernels)[0]
        if has_spectrum and not any(spec.on_spectrum for spec in sized):
            warn(f"no spectrum: the budget leaves room for fewer than {_FEW_KERNELS} kernels")
        by_layout: dict[tuple[int, bool], list[KernelsSpec]] = {}
        for spec in sized:
            by_layout.setdefault((spec.cells, spec.without_mean), []).append(spec)
        widest = [self._widest(specs, problem) for specs in by_layout.values()]
        # Few kernels of many cells tell less than one would of all.
        enough = [spec for spec in widest if spec.n_kernels >= _FEW_KERNELS]
        return enough or widest[:1]

    def _widest(self, sized: Sequence[KernelsSpec], problem: Problem) -> KernelsSpec:
        """Return the spec of the widest weights that leave enough kernels, else of the most."""
        if problem.options.linear == "auto":
            most = self._spec(problem, _MOST_BITS, sized[0].on_spectrum, sized[0])
            sized = [
                spec for spec in sized if spec.bits < _MOST_BITS or spec.n_kernels == most.n_kernels
            ]
        enough = [spec for spec in sized if spec.n_kernels >= _FEW_KERNELS]
        return enough[0] if enough else max(sized, key=lambda spec: spec.n_kernels)

    def tune(self, specs: Sequence[KernelsSpec], problem: Problem, pace: Pace) -> Rounds:
        """Compare numbers of cells by fits to some windows, whose kernels are not chosen."""
        few = problem.once(_few_windows)
        if len(specs) < 2 or not few.folds:
            return
        tried = progress.steps("choosing cells", specs)
        candidates = [_judged_in_short(spec, problem, few) for spec in tried]
        yield [best_trial(specs, candidates, few, few.folds)]

    def skeleton(self, spec: KernelsSpec, problem: Problem) -> IntegerModel:
        """Return random kernels with random weights."""
        return _fitted(spec, problem.once(Problem.few), untrained=True).machine

    def judge(self, spec: KernelsSpec, problem: Problem, fold: Fold, share: float) -> Candidate:
        data, out = problem.data, fold.outside
        model = _fitted(spec, replace(problem, data=data.of(fold.inside))).machine
        totals = model.readout.totals(model.run(model.quantize_inputs(data.X[out])))
        decisions = (totals * model.decision_scale).astype(np.float32)
        return candidate_of(spec, decisions, problem, fold, temperatures=WIDE_TEMPERATURES)

    def fit(self, spec: KernelsSpec, problem: Problem, pace: Pace) -> TrainingResult:
        """Choose kernels, and fit the linear part."""
        return _fitted(spec, problem)


KINDS = (KernelsKind(),)


def _fitted(spec: KernelsSpec, problem: Problem, *, untrained: bool = False) -> TrainingResult:
    assert problem.shape is not None
    return fit_windows(problem.data, problem.options, spec, problem.shape, untrained)


def spectrum_of_kernels(problem: Problem) -> tuple[Spectrum | None, str]:
    """Return the spectrum that kernels take, and why sounds have none; see `spectrum_of`."""
    assert problem.shape is not None
    return spectrum_of(problem.options, problem.shape, problem.data.raw_dtype)


def _chooses_cells(problem: Problem) -> bool:
    """Whether a number of cells is chosen on held-out windows."""
    limits, shape, options = problem.limits, problem.shape, problem.options
    if limits is None or problem.of_values or problem.is_quick or options.n_kernels is not None:
        return False
    assert shape is not None
    is_large = limits.flash is None or limits.flash >= _LEAST_FLASH
    return is_large and len(problem.data.X) > FEW_WINDOWS and shape[0] >= 4 * _CELLS


def _layouts(problem: Problem, on_spectrum: bool) -> list[KernelSettings]:
    """Return the settings of cells that compete."""
    if problem.options.cells != "auto":
        return [KernelSettings(cells=int(problem.options.cells))]
    if on_spectrum:
        return [KernelSettings(cells=2)]
    layouts = [KernelSettings()]
    if _chooses_cells(problem):
        layouts.append(KernelSettings(cells=_CELLS))
        if problem.data.raw_dtype in NARROW:
            layouts.append(KernelSettings(cells=_CELLS, without_mean=True))
    return layouts


def _few_windows(problem: Problem) -> Problem:
    """Return the problem of short fits: windows, as many of each class, and their weights."""
    data = problem.data
    rows, weight = some_rows(data.targets(), data.weight, RANKING_WINDOWS)
    few = replace(data.of(rows), sample_weight=weight.astype(np.float64))
    return replace(problem, data=few, memory={})


def _judged_in_short(spec: KernelsSpec, problem: Problem, few: Problem) -> Candidate:
    """Fit the counts of drawn kernels inside folds, and judge them outside."""
    data, shape = problem.data, problem.shape
    assert shape is not None
    windows = [part.X[:, : shape[0] * shape[1]] for part in (data, few.data)]
    raw_dtype = data.raw_dtype
    if spec.without_mean:
        grid, raw_dtype = Grid.raw(raw_dtype, shape[0], 1, shape[1]), "int32"
        windows = [Offset().run(part, grid) for part in windows]
    # Of all windows: a channel may vary in few of them.
    scaler = signal_scaler(windows[0], raw_dtype, shape)
    targets, weight = few.data.targets(), few.data.weight
    plan = signal_plan(problem.options, spec, shape, len(targets))
    bits = min(plan.level_bits, scaler.bits)
    plan = replace(plan, n_pool=_COMPARED_COUNTS // plan.cells, level_bits=bits)
    rows = TrainingRows(windows[1], targets, weight)
    inputs = SignalPool(rows, (shape[0], shape[1]), scaler, plan).inputs
    parts = []
    for fold in few.folds:
        inside = fold.inside
        fit = fit_levels(inputs[inside], 2 * targets[inside] - 1, weight[inside], [], spec.bits)
        decisions = decide(fit.stored, inputs[fold.outside])
        judged = candidate_of(spec, decisions, few, fold, temperatures=WIDE_TEMPERATURES)
        parts.append(judged)
    return join_folds(parts)
