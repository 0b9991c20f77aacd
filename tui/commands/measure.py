"""`shardwise measure fit`: fits a local calibration to one's own runs, or all that is shipped to its measurements."""

from __future__ import annotations

import argparse
from pathlib import Path

from estimator.errors import PlanError
from knowledge.own.calibration import calibration_file
from knowledge.own.files import shipped_alone
from measure.fit import own
from measure.history.store import runs
from pages.rendering import terminal
from pages.results.runs import calibration
from planner.history.fitting import told

_ROOT = Path(__file__).parents[2]


def run(arguments: argparse.Namespace) -> int:
    if arguments.shipped:
        return _shipped()
    if arguments.reset:
        kept = calibration_file().exists()
        if kept and not arguments.dry:
            own.reset()
        gone = "would be taken away" if arguments.dry else "is gone"
        print(f"the local calibration {gone}" if kept else "there is no local calibration")
        return 0
    fits = own.fitted(runs())
    saved = not arguments.dry and own.save(fits)
    terminal.show(calibration(told(fits, str(calibration_file()) if saved else None)))
    return 0 if saved or arguments.dry else 1


def _shipped() -> int:
    """Writes the files of fitted factors, the operators' first: the runs are fitted on top of them. Only what is
    shipped counts: what is measured knows nothing of the user's own rows, and would be fitted to them."""
    if not (_ROOT / "pyproject.toml").is_file():
        # Of an installed copy these files are the package's own: the next install would take the fit away again.
        raise PlanError("shipped", f"{_ROOT} is an installed copy", ["measure fit, for your own runs", "a checkout"])
    # Each of these reads thousands of measurements, which a local fit does not need.
    from measure.fit import attention, decode, matmul, network  # see above
    from measure.fit.serving import calibrate as serving_calibrate  # see above
    from measure.fit.training import calibrate as training_calibrate  # see above

    try:
        with shipped_alone():
            for part in (matmul, attention, network, decode, training_calibrate, serving_calibrate):
                part.main()
    except OSError as error:
        raise PlanError("measure fit", f"cannot write: {error}", ["a checkout that you may write to"]) from None
    return 0
