"""What collectives reach on one kind of link and network: fitted numbers, made by `knowledge` from its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class KernelLimits(NamedTuple):
    """Up to which bytes an engine uses its kernels, as (devices, bytes); devices that are not listed use none.

    Its own all-reduce below `direct`, from there to below `switch` one where the switch adds. Below `one_shot` the
    former takes one phase, else two; where nothing is listed the faster one.
    """

    direct: tuple[tuple[int, float], ...]
    one_shot: tuple[tuple[int, float], ...] = ()
    switch: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class NetworkFactors:
    """What was fitted to timings of collectives on one kind of scale-up link and one kind of network.

    Bandwidths are fractions of the catalogue's one-way bandwidth, in bus bandwidth of nccl-tests: `ring` for rings,
    `switch` where switches add (NVLink SHARP; only where `adds_in_switch`; `switch_wide` of that over several nodes),
    `spread` for all-to-all, `pair` for one message, `out` between nodes. `own` is what copying the own share costs, as
    a part of moving it. A collective starts in `base_s`, sums in switches in `switch_s` (which holds what keeps a
    library from choosing them, too), and takes `step_s` per step inside a domain. A chunk costs `chunk_s` inside, and
    `out_chunk` latencies of the network outside.

    Kernels of serving engines that read the peers' memory start in `direct_s` plus `direct_peer_s` per peer, reach
    `direct` of the bandwidth, and wait `direct_sync_s` per peer between two phases. Those that let the switch add start
    in `direct_switch_s` and reach `direct_switch`.

    Where bridges join fewer devices than a node has, the others are reached over the host's PCIe: at `host` of what the
    bridges' link reaches of its bandwidth, which is less than 1 where no device reads another's memory there.

    `overlaps` is false where a library ends a collective before the next kernel starts.
    """

    ring: float
    switch: float
    switch_wide: float
    spread: float
    pair: float
    own: float
    base_s: float
    switch_s: float
    step_s: float
    chunk_s: float
    out: float
    out_chunk: float
    direct: float
    direct_s: float
    direct_peer_s: float
    direct_sync_s: float
    direct_switch: float
    direct_switch_s: float
    host: float
    adds_in_switch: bool
    overlaps: bool
