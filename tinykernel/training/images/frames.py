"""Training of frames of a camera: of the images that the stage *frame* makes of them."""

from __future__ import annotations

from dataclasses import replace

from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.model.stages.frame import Frame
from tinykernel.training.images.training import fit_images
from tinykernel.training.options import TrainerOptions
from tinykernel.training.result import TrainingResult
from tinykernel.training.trainset import TrainSet


def fit_frames(data: TrainSet, options: TrainerOptions, shape: tuple[int, ...]) -> TrainingResult:
    """Learn from images of (height, width, channels), and put the stage before what they learn."""
    assert options.frame is not None
    frame = Frame.of(options.frame, shape)
    if data.raw_dtype != "uint8":
        raise TinykernelError(f"frame: a camera gives bytes, uint8, not {data.raw_dtype}")
    validation = data.validation
    if validation is not None:
        validation = frame.run(validation[0], frame.taken), validation[1]
    images = replace(data, X=frame.run(data.X, frame.taken), validation=validation)
    result = fit_images(images, options, shape)
    model = result.machine
    assert isinstance(model, IntegerModel)
    model = replace(model, input=frame.taken, stages=(frame, *model.stages))
    return replace(result, machine=model)
