"""When samples arrive: the rate of a sensor, and its pauses."""

import math
from array import array
from dataclasses import dataclass

import numpy as np

_ONE = 0.02  # seconds within which bytes are one arrival: a read may divide what was sent at once
_SHORTEST = 0.1  # seconds of a pause, at least
_BRIEF = 0.25  # seconds that are too few for a rate: what was sent at once takes a part of them
_STEPS = 5  # a pause is longer than so many median steps


@dataclass(frozen=True)
class Pause:
    """Time for which a sensor sent nothing: what it took besides one step."""

    sample: int  # the first one behind it
    seconds: float


class Arrivals:
    """The times of samples; what a driver kept and gives at once later is no pause."""

    def __init__(self) -> None:
        self.samples = 0
        self.latest = -math.inf
        self._begun = -math.inf  # of the latest arrival
        self._times, self._counts = array("d"), array("q")

    def add(self, seconds: float, samples: int) -> None:
        """Note that so many samples more are there at a time."""
        if samples == 0:
            return
        self.samples += samples
        self.latest = seconds
        if seconds - self._begun < _ONE:
            self._times[-1], self._counts[-1] = seconds, self.samples
        else:
            self._begun = seconds
            self._times.append(seconds)
            self._counts.append(self.samples)

    def measured(self) -> tuple[float, list[Pause]]:
        """Return the rate without the pauses, in Hz, and the pauses."""
        # The rate is 0 where it is unknown: of fewer than three arrivals, or within a quarter
        # second.
        times, counts = np.array(self._times), np.array(self._counts)
        if len(times) < 3 or times[-1] - times[0] < _BRIEF:
            return 0.0, []
        steps = np.diff(times)
        step = float(np.median(steps))
        longest = max(_SHORTEST, _STEPS * step)
        usual = steps <= longest
        rate = float(np.diff(counts)[usual].sum() / steps[usual].sum())
        # What came late is there soon after the silence.
        soon = np.searchsorted(times, times[1:] + max(_SHORTEST, 2 * step), "right") - 1
        pauses = []
        for at in np.flatnonzero(~usual):
            until = soon[at]
            missing = rate * (times[until] - times[at]) - (counts[until] - counts[at])
            if missing > rate * steps[at] / 2:
                pauses.append(Pause(int(counts[at]), float(missing / rate)))
        sending = times[-1] - times[0] - sum(pause.seconds for pause in pauses)
        return float((counts[-1] - counts[0]) / sending), pauses
