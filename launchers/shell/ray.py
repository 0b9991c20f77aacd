"""A Ray cluster in a script that is run on every node: the first node starts it and the run, the others wait in it."""

from __future__ import annotations

from launchers.launch.training import TrainingLaunch

_START = "ray start --num-gpus={devices} --disable-usage-stats"


def ray_in_script(launch: TrainingLaunch) -> list[str]:
    """Lines before the run's own command; none on one node, where the run starts a cluster of its own.

    A node leaves with the first one: however the run ends, the first node's Ray is stopped, and that ends the others.
    """
    if launch.nodes == 1:
        return []
    start = _START.format(devices=launch.node_devices)
    return [
        "# In a job of a Ray cluster that cluster is used.",
        'if [ -z "${RAY_ADDRESS:-}" ]; then',
        '  NODE_RANK="${NODE_RANK:-${SLURM_NODEID:?set NODE_RANK to the number of this node}}"',
        '  HEAD="${MASTER_ADDR:?}:${MASTER_PORT:?}"',
        "  trap 'ray stop >/dev/null 2>&1' EXIT",
        '  if [ "$NODE_RANK" -ne 0 ]; then',
        "    for _ in $(seq 60); do",
        f'      {start} --address="$HEAD" && break',
        "      sleep 10",
        "    done",
        '    while ray health-check --address "$HEAD" >/dev/null 2>&1; do sleep 15; done',
        "    exit 0",
        "  fi",
        f'  {start} --head --port="$MASTER_PORT"',
        "fi",
        "# All devices have to be there before the run takes them; nodes that are missing after half an hour end it.",
        "timeout 1800 python3 - <<'PY'",
        "import time",
        "",
        "import ray",
        "",
        'ray.init(address="auto")',
        f'while ray.cluster_resources().get("GPU", 0) < {launch.devices}:',
        "    time.sleep(5)",
        "PY",
        "",
    ]
