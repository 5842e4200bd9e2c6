"""The method "learned": the joint gradient trainer behind the face that all trainers have."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from tinykernel.training.joint import fit_joint
from tinykernel.training.problem import TrainingOptions, TrainingProblem, TrainingResult

__all__ = ["train_learned"]


def train_learned(problem: TrainingProblem, options: TrainingOptions) -> TrainingResult:
    """Learn phase windows, G, S and the weights together, as `tinykernel.training.joint` says.

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
    """
    named: dict[str, Any] = {"storage": options.storage}
    if options.sigma is not None:
        named |= {"sigma": options.sigma, "sigma_multiple": 1.0}
    result = fit_joint(
        problem.X,
        problem.codes,
        n_components=options.n_components,
        epochs=options.epochs,
        random_state=options.seed,
        n_threads=options.n_threads,
        sample_weight=problem.sample_weight,
        scaler_scope=options.scaler_scope,
        schedules=options.schedules,
        input_bits=None if options.input_bits == "auto" else int(options.input_bits),
        **named,
    )
    trials = [asdict(trial) for trial in result.trials]
    numbers = [name for name in (trials[0] if trials else {}) if name != "storage"]
    return TrainingResult(
        replace(result.machine, classes=problem.classes),
        sigma=result.sigma,
        regularization=0.0,
        n_iter=len(result.history),
        cv_results={name: np.array([float(t[name]) for t in trials]) for name in numbers},
    )
