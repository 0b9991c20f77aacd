"""`shardwise measure fit`: fits everything to the measurements again."""

from __future__ import annotations

import argparse

from estimator.errors import PlanError
from knowledge.own.files import shipped_alone
from measure.fit import attention, decode, matmul, network
from measure.fit.serving import calibrate as serving_calibrate
from measure.fit.training import calibrate as training_calibrate


def run(arguments: argparse.Namespace) -> int:
    """Writes the files of fitted factors, the operators' first: the runs are fitted on top of them. Only what is
    shipped counts: what is measured knows nothing of the user's own rows, and would be fitted to them."""
    try:
        with shipped_alone():
            for part in (matmul, attention, network, decode, training_calibrate, serving_calibrate):
                part.main()
    except OSError as error:
        raise PlanError("measure fit", f"cannot write: {error}", ["a checkout that you may write to"]) from None
    return 0
