"""The stage frame: what training saw of a picture is what the chip sees of a camera's frame."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.firmware.compiling import WARNINGS, run_program
from tests.frames import frame_model
from tests.refusals import refused
from tinykernel.base.errors import ModelError
from tinykernel.pieces.frame.sample import random_frame
from tinykernel.pieces.frame.spec import FORMATS, Frame
from tinykernel.pieces.grid import Grid

pytestmark = pytest.mark.usefixtures("page")


def colours(name: str, pixels: list[list[int]], x: int) -> list[int]:
    """Return red, green and blue of a pixel of a line, step by step."""
    first, second = pixels[x][0], pixels[x][-1]
    if name == "grey8":
        return [first]
    if name == "rgb888":
        return pixels[x]
    if name == "yuyv":
        u, v = pixels[x - x % 2][1] - 128, pixels[x - x % 2 + 1][1] - 128
        red = first + ((91881 * v + 32768) >> 16)
        green = first - ((22554 * u + 46802 * v + 32768) >> 16)
        blue = first + ((116130 * u + 32768) >> 16)
        return [min(max(value, 0), 255) for value in (red, green, blue)]
    word = 256 * first + second if name == "rgb565" else 256 * second + first
    parts = word >> 11, word >> 5 & 63, word & 31
    return [
        value * 8 + value // 4 if i != 1 else value * 4 + value // 16
        for i, value in enumerate(parts)
    ]


def slow_image(frame: Frame, pixels: list[list[list[int]]]) -> list[int]:
    """Return the image by the overlaps of the formula, pixel by pixel."""
    top, left, high, wide = frame.box
    image = []
    for i in range(frame.rows):
        for j in range(frame.columns):
            sums = [0] * frame.channels
            for y in range(high):
                down = min((i + 1) * high, (y + 1) * frame.rows) - max(i * high, y * frame.rows)
                for x in range(wide):
                    right = min((j + 1) * wide, (x + 1) * frame.columns)
                    across = right - max(j * wide, x * frame.columns)
                    if down <= 0 or across <= 0:
                        continue
                    seen = colours(frame.pixel_format, pixels[top + y], left + x)
                    if frame.channels == 1 and frame.pixel_format == "yuyv":
                        seen = [pixels[top + y][left + x][0]]
                    elif frame.channels == 1 and len(seen) == 3:
                        seen = [(19595 * seen[0] + 38470 * seen[1] + 7471 * seen[2] + 32768) >> 16]
                    sums = [a + down * across * b for a, b in zip(sums, seen, strict=True)]
            image += [(2 * total + high * wide) // (2 * high * wide) for total in sums]
    return image


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), channels=st.sampled_from([1, 3]))
def test_frames_are_resized_as_the_formula_says(seed: int, channels: int) -> None:
    """Every format, crop and ratio gives the means of areas, rounded once."""
    rng = np.random.default_rng(seed)
    frame = random_frame(seed, *rng.integers(1, 6, 2).tolist(), channels)
    grid = frame.taken
    rows = rng.choice([0, 255, *rng.integers(0, 256, 6)], (2, grid.size)).astype(np.uint8)
    made = frame.run(rows, grid)
    for row, image in zip(rows, made, strict=True):
        pixels = row.reshape(grid.rows, grid.columns, grid.channels).tolist()
        assert image.tolist() == slow_image(frame, pixels)


def test_frames_that_are_none_are_refused() -> None:
    """A format that is not known, odd pairs and grids of another camera end in one line."""
    frame = Frame("rgb565", 8, 6, 2, 2, 3)
    for change in (
        {"pixel_format": "rgb444"},
        {"pixel_format": "yuyv", "width": 7},
        {"pixel_format": "grey8"},
        {"width": 4096, "height": 4096},
    ):
        refused(ModelError, replace, frame, **change)
    refused(ModelError, frame.gives, Grid.raw("uint8", 6, 8, 3))


@pytest.mark.parametrize("name", FORMATS)
def test_lines_one_by_one_give_the_scores_of_the_whole_frame(name, tmp_path, require_tool):
    """A camera's DMA hands over lines; frames may follow each other without a new begin."""
    model = frame_model(5, 12, 16)
    frame = replace(model.stages[0], pixel_format=name)
    model = replace(model, input=frame.taken, stages=(frame, *model.stages[1:]))
    assert run_program(require_tool("gcc"), "frame_lines", model, tmp_path, *WARNINGS) == 0
