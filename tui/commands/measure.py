"""`shardwise measure fit`: fits everything to the measurements again."""

from __future__ import annotations

import argparse

from estimator.errors import PlanError


def run(arguments: argparse.Namespace) -> int:
    """Writes the files of fitted factors, the operators' first: the runs are fitted on top of them."""
    from measure.fit import attention as attention_fit
    from measure.fit import decode as decode_fit
    from measure.fit import matmul as matmul_fit
    from measure.fit import network as network_fit
    from measure.fit.serving import calibrate as serving_calibrate
    from measure.fit.training import calibrate

    try:
        for part in (matmul_fit, attention_fit, network_fit, decode_fit, calibrate, serving_calibrate):
            part.main()
    except OSError as error:
        raise PlanError("measure fit", f"cannot write: {error}", ["a checkout that you may write to"]) from None
    return 0
