"""The method "learned": the joint gradient trainer behind the face that all trainers have."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from tinykernel.training.options import JointOptions
from tinykernel.training.problem import TrainingOptions, TrainingProblem, TrainingResult
from tinykernel.training.trainer import JointResult, fit_joint

__all__ = ["train_learned"]

_SEARCHED = ("sigma_multiple", "noise", "slope", "dropout")


def train_learned(problem: TrainingProblem, options: TrainingOptions) -> TrainingResult:
    """Learn phase windows, G, S and the weights together, as `tinykernel.training.trainer` says.

    The scaler is that of `fit_joint_scaling`, of the scope asked for; of the other options those of
    Algorithm 1 (loss, penalty, start, cross-validation) do not apply.

    Parameters
    ----------
    problem : TrainingProblem
    options : TrainingOptions

    Returns
    -------
    TrainingResult
        ``regularization`` is 0: noise takes its place. ``cv_results`` holds the short trainings by
        which sigma, noise, slope and dropout were chosen.

    Raises
    ------
    TinykernelError
        If an option is not allowed.
    KeyboardInterrupt
        For Ctrl-C before the end of the first epoch. Later the best machine until then is returned.
    """
    named: dict[str, Any] = {}
    if not options.capacity:
        named["layout"] = options.layout
    elif not options.search:
        # What is given is not searched: then the layout alone is chosen.
        named = {name: getattr(JointOptions(), name) for name in _SEARCHED}
    if options.sigma is not None:
        named |= {"sigma": options.sigma, "sigma_multiple": 1.0}
    if options.noise is not None:
        named["noise"] = options.noise
    result = fit_joint(
        problem.X,
        problem.codes,
        n_components=options.n_components,
        capacity=options.capacity or None,
        epochs=options.epochs,
        search=options.search,
        random_state=options.seed,
        n_threads=options.n_threads,
        sample_weight=problem.sample_weight,
        groups=problem.groups,
        validation=problem.validation or options.validation_fraction or None,
        patience=options.patience,
        teacher=problem.teacher,
        teacher_share=options.teacher_share,
        image_shape=options.image_shape,
        augment_shift=options.shift,
        scaler_scope=options.scaler_scope,
        input_bits=None if options.input_bits == "auto" else int(options.input_bits),
        firmware=options.firmware,
        **named,
    )
    interrupted = _was_interrupted(result, options.patience)
    if interrupted and not result.history:
        raise KeyboardInterrupt  # before there was anything to keep
    trials = [asdict(trial) for trial in result.trials]
    numbers = [name for name in (trials[0] if trials else {}) if name != "layout"]
    measured = [name for name in ("loss", "accuracy") if name in result.history[0]]
    return TrainingResult(
        replace(result.machine, classes=problem.classes),
        sigma=result.sigma,
        regularization=0.0,
        n_iter=len(result.history),
        cv_results={name: np.array([float(t[name]) for t in trials]) for name in numbers},
        n_components=result.options.n_components,
        layout=result.options.layout,
        history={name: np.array([entry[name] for entry in result.history]) for name in measured},
        interrupted=interrupted,
    )


def _was_interrupted(result: JointResult, patience: int | None) -> bool:
    """Tell an end by Ctrl-C from the last epoch and from the end of patience."""
    done = len(result.history)
    if done == result.options.epochs:
        return False
    if patience is None or not result.history or "accuracy" not in result.history[0]:
        return True
    scores = [entry["accuracy"] for entry in result.history]
    best = max(range(done), key=lambda epoch: (scores[epoch], epoch))
    return done - 1 - best < patience
