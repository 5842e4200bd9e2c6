"""Training of images: convolutions are learned with the linear part."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import OptionError, ShapeError
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.choice import Fold
from tinykernel.learn.convolutions import chains
from tinykernel.learn.convolutions.separable import SeparableLearner, SeparablePlan, separable_plan
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear import training
from tinykernel.learn.loop import Replan, TrainingResult, run_epochs
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.convolutions.spec import MOST_CHANNELS
from tinykernel.pieces.frame.spec import Frame
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.scale.spec import Scale

# Epochs for 60,000 images.
_EPOCHS_OF_CHAINS, _EPOCHS, _MOST_EPOCHS = 30, 20, 50
# Default variation of images, without which convolutions overfit: in 16 KB, for 20,000 images of
# Fashion, the accuracy on held-out training rows is 89.45 % with it and 88.93 % without. Mirrored
# images may mean something else.
_VARIED_CHAINS, _VARIED = {"affine": 0.3}, {"affine": 0.5}


@dataclass(frozen=True)
class ImageSettings:
    """What decides the size of convolutions with a linear part."""

    n_channels: int = 32
    bits: int = 4  # {2, 4, 8}: of the weights of the linear part.
    is_separable: bool = False
    is_coarse: bool = False  # with fewer channels and positions in early blocks.


@dataclass(frozen=True, eq=False)
class PreparedConvolutions(ABC):
    """Rows as convolutions see them, and the grid of the raw ones."""

    data: TrainSet
    rows: training.TrainingRows
    options: TrainerOptions
    grid: Grid
    #: By whether convolutions are separable.
    LEARNERS: ClassVar[dict[bool, type[chains.ImageLearner]]]

    @abstractmethod
    def plan(self, settings: ImageSettings, n_rows: int) -> chains.ConvolutionPlan | SeparablePlan:
        """Return the layers and how they are trained, with the epochs for so many rows."""

    @abstractmethod
    def augmentation(self, settings: ImageSettings) -> Augmentation:
        """Return how much inputs are varied."""

    def epochs(self, settings: ImageSettings) -> int:
        """Return the epochs."""
        return self.plan(settings, len(self.rows.inputs)).linear.epochs

    def learner(
        self, settings: ImageSettings, rows: training.TrainingRows | None = None
    ) -> chains.ImageLearner:
        """Begin with convolutions, on all rows or some of them."""
        n, rows = settings.n_channels, rows or self.rows
        if n > MOST_CHANNELS:
            raise OptionError(f"n_channels: {n}; give at most {MOST_CHANNELS}")
        plan = self.plan(settings, len(rows.inputs))
        return self.LEARNERS[settings.is_separable](rows, plan, self.augmentation(settings))

    @abstractmethod
    def stages(self, learner: chains.ImageLearner) -> tuple[Stage, ...]:
        """Return the stages before the linear part; TinykernelError for what the C lacks."""

    def model(self, learner: chains.ImageLearner) -> IntegerModel:
        """Return the model of a learner."""
        stages = self.stages(learner)
        model = training.chained_model(stages, self.grid, self.data.meaning, learner.stored())
        return replace(model, hop=self.options.hop)

    def fit(
        self, settings: ImageSettings, share: float = 1.0, replan: Replan | None = None
    ) -> TrainingResult:
        """Learn convolutions, for a share of the epochs."""
        learner = self._shorten(self.learner(settings), share)
        self.stages(learner)  # what cannot be is refused before the long training
        history = training.run_training(learner, self.rows, replan)
        return TrainingResult(self.model(learner), learner.plan, history)

    @staticmethod
    def _shorten(learner: chains.ImageLearner, share: float) -> chains.ImageLearner:
        epochs = int(np.ceil(learner.recipe.epochs * share))
        learner.recipe = replace(learner.recipe, epochs=epochs)
        learner.plan = replace(learner.plan, linear=learner.recipe)
        return learner

    def decisions(self, settings: ImageSettings, fold: Fold, share: float) -> NDArray[np.float32]:
        """Train on the rows inside a fold for a share of the epochs, and decide those outside."""
        learner = self._shorten(self.learner(settings, self.rows.of(fold.inside)), share)
        run_epochs(learner, learner.recipe.epochs, stage=None)
        return learner.decide(learner.features(self.rows.inputs[fold.outside]))


@dataclass(frozen=True, eq=False)
class PreparedImages(PreparedConvolutions):
    """Images as levels."""

    scaler: Scale
    frame: Frame | None
    shape: tuple[int, ...]
    LEARNERS: ClassVar[dict[bool, type[chains.ImageLearner]]] = {
        False: chains.ConvolutionLearner,
        True: SeparableLearner,
    }

    @staticmethod
    def of(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> "PreparedImages":
        """Scale images of (height, width, channels), or those in frames of a camera."""
        frame = None
        if options.frame is not None:
            frame = Frame.of(options.frame, shape)
            if data.raw_dtype != "uint8":
                raise ShapeError(
                    f"frame: rows of a camera are uint8, not {data.raw_dtype}; convert them"
                )
            data = data.map_rows(lambda frames: frame.run(frames, frame.taken))
        rows = training.split_rows(data, options)
        pixels = rows.inputs.reshape(-1, shape[2])
        scope = "global" if shape[2] == 1 else "auto"
        scaler = choose_scaler(pixels, data.raw_dtype, 8, scope)
        training.check_channels(scaler)
        rows = rows.map_rows(lambda raw: chains.as_levels(raw, scaler, shape))
        grid = Grid.raw(data.raw_dtype, *shape) if frame is None else frame.taken
        return PreparedImages(data, rows, options, grid, scaler, frame, shape)

    def plan(self, settings: ImageSettings, n_rows: int) -> chains.ConvolutionPlan | SeparablePlan:
        """Return the layers and how they are trained, with the epochs for so many rows."""
        options, is_separable = self.options, settings.is_separable
        epochs = _EPOCHS if is_separable else _EPOCHS_OF_CHAINS
        linear = training.linear_recipe(options, n_rows, settings.bits, epochs, self.data.losses)
        if not is_separable:
            return chains.convolution_plan(self.shape, settings.n_channels, linear)
        if options.epochs is None:
            linear = replace(linear, epochs=min(linear.epochs, _MOST_EPOCHS))
        size = self.shape, settings.n_channels
        return separable_plan(*size, linear, is_coarse=settings.is_coarse)

    def augmentation(self, settings: ImageSettings) -> Augmentation:
        """Return how much images are varied."""
        usual = _VARIED if settings.is_separable else _VARIED_CHAINS
        return Augmentation.of(usual if self.options.augment is None else self.options.augment)

    def stages(self, learner: chains.ImageLearner) -> tuple[Stage, ...]:
        """Return the frame if there is one, levels, and convolutions."""
        stages = learner.stages(self.scaler)
        return stages if self.frame is None else (self.frame, *stages)
