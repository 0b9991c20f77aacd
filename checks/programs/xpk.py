"""Reads xpk commands with its own parser. A question is {"words": what stands behind `xpk`}.

The answer has the chips of all slices, by xpk's own table of device types."""

from __future__ import annotations

import argparse

from xpk.core.system_characteristics import get_system_characteristics
from xpk.parser.core import set_parser


def answer(question):
    parser = argparse.ArgumentParser(prog="xpk")
    set_parser(parser)
    args = parser.parse_args(question["words"])
    slice_, _ = get_system_characteristics(args)
    return {
        "chips": args.num_slices * slice_.vms_per_slice * slice_.chips_per_vm,
        "workload": args.workload,
        "command": args.command,
        "image": args.base_docker_image,
        "restarts": int(args.max_restarts),
    }
