"""Whether a local calibration on a few runs helps the others: `python benchmarks/own_calibration.py` (minutes).

Of each large source 60 runs are taken, the shipped factors are fitted again without the whole source, and then a local
calibration to 5 of the 60 at a time, which counts where those of the 5 that are left out of it are estimated better
by it, as `shardwise measure fit` has it. Told is in how many of 20 draws the mean error of the others, as far as they
are on devices of the same families, at least halves, as they are and on a cluster that is slower than all that was
measured (every step takes 1.3 times as long), and how many of them the intervals hold (in five draws; 80 % are meant).
First told is what calibrations to 50 of the 60 leave: what no number of runs takes away, as it differs from run to run.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from measure.fit.hierarchy import Values
from measure.fit.own import family_fits, held_back, missed, moved, spreads
from measure.fit.training.held_out_times import everything
from measure.fit.training.time import TimedRun, factors_of, fit, thinned, values_of

SAMPLE, FITTED, DRAWS, SLOWER, FOLDS, INTERVALS = 60, 5, 20, 1.3, 6, 5


def held_out(source: str) -> tuple[list[TimedRun], Values]:
    """60 runs of a source, and the factors of theirs that were fitted without it."""
    runs, full = everything()
    others = fit([run for run in thinned(runs) if run.case.source != source], full).values
    own = [run for run in runs if run.case.source == source]
    sample = random.Random(1).sample(own, SAMPLE)
    return sample, {node: values_of(others, *node) for run in sample for node in factors_of(run)}


def drawn(sample: Sequence[TimedRun], seed: int) -> tuple[list[TimedRun], list[TimedRun]]:
    """Some runs to calibrate to, and the others on devices that they were made on."""
    places = set(random.Random(seed).sample(range(SAMPLE), FITTED))
    chosen = [run for place, run in enumerate(sample) if place in places]
    families = {run.job.machine.accelerator.family for run in chosen}
    others = [run for place, run in enumerate(sample) if place not in places]
    return chosen, [run for run in others if run.job.machine.accelerator.family in families]


def draws(sample: Sequence[TimedRun], start: Values) -> list[tuple[float, float]]:
    """(Mean error before, after) of those that were not fitted to, draw by draw."""
    results = []
    for seed in range(DRAWS):
        chosen, rest = drawn(sample, seed)
        kept = {fit.family: start | fit.values for fit in family_fits(chosen, start) if fit.used}
        after = [missed(run, kept.get(run.job.machine.accelerator.family, start)) for run in rest]
        errors = [fmean(map(abs, each)) for each in ([missed(run, start) for run in rest], after)]
        results.append((errors[0], errors[1]))
    return results


def held(sample: Sequence[TimedRun], start: Values) -> float:
    """Share of those that were not fitted to whose times lie in the intervals that a local calibration gives."""
    within = []
    for seed in range(INTERVALS):
        chosen, rest = drawn(sample, seed)
        values, widths = start | moved(chosen, start), spreads(chosen, held_back(chosen, start))
        rest = [run for run in rest if run.job.framework.name in widths]
        within += [abs(missed(run, values)) <= math.log1p(widths[run.job.framework.name]) for run in rest]
    return fmean(within)


def left(sample: Sequence[TimedRun], start: Values) -> float:
    """Mean error of runs where all but a tenth or so of them were fitted to."""
    errors = []
    for fold in range(FOLDS):
        rest = [run for place, run in enumerate(sample) if place % FOLDS == fold]
        values = start | moved([run for place, run in enumerate(sample) if place % FOLDS != fold], start)
        errors += [abs(missed(run, values)) for run in rest]
    return fmean(errors)


def main() -> int:
    counts = Counter(run.case.source for run in everything()[0])
    for source in [
        name for name, count in counts.most_common() if count >= SAMPLE and name in (sys.argv[1:] or counts)
    ]:
        sample, start = held_out(source)
        print(f"{source}: of {len(sample) - len(sample) // FOLDS} runs {left(sample, start):.1%} are left", flush=True)
        for factor in (1.0, SLOWER):
            slower = [replace(run, measured_s=run.measured_s * factor) for run in sample]
            results = draws(slower, start)
            halved, better = (sum(after <= share * before for before, after in results) for share in (0.5, 1.0))
            before, after = (fmean(pair[place] for pair in results) for place in (0, 1))
            print(f"{source}, steps x {factor}: error {before:.1%} to {after:.1%}; "
                  f"halved in {halved}, no worse in {better} of {DRAWS}; "
                  f"intervals hold {held(slower, start):.0%}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
