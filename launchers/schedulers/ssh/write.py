"""Plain ssh: a bash script that brings the files to every host, starts all nodes, shows what they write, and stops all
when one fails.

Each node is started with a terminal of its own (ssh -tt), so that the end of the connection ends the program there.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from launchers.devices import visible
from launchers.launch.fields import required
from launchers.launch.heading import scheduler_heading
from launchers.launch.of_plan import Launch
from launchers.pieces import File, Piece, Start
from launchers.schedulers import node
from launchers.shell.quoting import AS_WRITTEN, ENGINE_PORT

PATH, SCRIPT, HOSTS = "ssh.sh", "ssh-node.sh", "hosts"
_TARGET = "ssh"

_RUN = r"""
cd "$(dirname "$0")"
mapfile -t lines < <(grep -Ev '^[[:space:]]*(#|$)' "$hosts_file")
hosts=() addresses=()
for line in "${lines[@]}"; do
  read -r host address _ <<<"$line"
  if [[ ! $host =~ ^[A-Za-z0-9][A-Za-z0-9._@:-]*$ || $host == SET_ME* ]]; then
    echo "$hosts_file: '$host' is not a host" >&2
    exit 2
  fi
  hosts+=("$host")
  addresses+=("${address:-${host##*@}}")
done
if ((${#hosts[@]} != host_count)); then
  echo "$hosts_file: ${#hosts[@]} hosts, but the plan has $host_count nodes" >&2
  exit 2
fi

pids=()
stop() {
  trap '' INT TERM
  for pid in "${pids[@]}"; do
    kill -- "-$pid" 2>/dev/null || true
  done
  wait
}
trap stop EXIT
trap 'exit 130' INT TERM

for host in "${hosts[@]}"; do
  tar -cf - "${files[@]}" | "${ssh[@]}" "$host" "mkdir -p $folder && tar -xf - -C $folder"
done

mkdir -p logs
set -m # every node is a job, which is stopped as one
for ((replica = 0; replica < replicas; replica++)); do
  master=${addresses[replica / share * nodes]}
  for ((rank = 0; rank < nodes; rank++)); do
    host=${hosts[replica / share * nodes + rank]}
    first=$((replica % share * devices))
    visible=$(seq -s, "$first" $((first + devices - 1)))
    name="$replica-$rank"
    command="cd $folder && exec sh ./$script $rank $master $port $((engine_port + replica % share)) $visible"
    { "${ssh[@]}" -tt "$host" "$command" </dev/null 2>&1 | tee "logs/$name.log" | sed -u "s/^/[$name] /"; } &
    pids+=($!)
  done
done

for ((left = ${#pids[@]}; left > 0; left--)); do
  code=0
  wait -n || code=$?
  if ((code)); then
    echo "a node ended with $code: the others are stopped" >&2
    exit "$code"
  fi
done
"""


def render(launch: Launch, start: Start, files: Sequence[File] = ()) -> Piece:
    """The script, what it runs on a node, and the list of hosts to fill in. Raises PlanError."""
    share = _replicas_on_a_host(launch)
    count = -(-launch.replicas // share) * launch.nodes
    brought = [*(file.path for file in files), SCRIPT]
    settings = [
        f"hosts_file={HOSTS}",
        f"folder='shardwise/{launch.slug}'",
        f"files=({' '.join(map(shlex.quote, brought))})",
        f"script='{SCRIPT}'",
        "ssh=(ssh -o BatchMode=yes -o ServerAliveInterval=30)",
        f"host_count={count} nodes={launch.nodes} replicas={launch.replicas} share={share} "
        f"devices={launch.node_devices}",
        f'port="${{MASTER_PORT:-{node.PORT}}}" engine_port={start.port or ENGINE_PORT}',
    ]
    head = ["#!/bin/bash", *_heading(launch)]
    head.append(f"# Files go to `folder` below your home on each host of `{HOSTS}`; what nodes write is in logs/ too.")
    text = "\n".join([*head, "set -euo pipefail", *settings]) + _RUN
    needs = (
        f"{HOSTS}: the {count} host{'s' if count > 1 else ''} of the run",
        f"every host: {node.programs(start)} on the PATH of a shell without login, and ssh with a key",
    )
    return Piece(
        (File(PATH, _TARGET, text, executable=True), _script(launch, start, share), _hosts(launch, count)), needs
    )


def _heading(launch: Launch) -> list[str]:
    return [*(f"# {line}" for line in scheduler_heading(launch, f"bash {PATH}")), "#"]


def _replicas_on_a_host(launch: Launch) -> int:
    if launch.replicas == 1 or launch.nodes > 1:
        return 1
    return max(
        1, min(launch.replicas, required("cluster.per_node", launch.plan.cluster.per_node) // launch.node_devices)
    )


def _script(launch: Launch, start: Start, share: int) -> File:
    head = [
        "#!/bin/sh",
        *_heading(launch),
        f"# What {PATH} runs on a node, from the folder of the files. Arguments: the node's rank, the first",
    ]
    head += ["# node's address, the port where nodes meet, the engine's port, and the devices to use."]
    preparation = [f'export PORT="$4" {visible(launch)}="$5"'] if share > 1 else []
    variables = {"NODE_RANK": '"$1"', "MASTER_ADDR": '"$2"', "MASTER_PORT": '"$3"'}
    lines = [*head, AS_WRITTEN, *node.script(launch, start, variables, preparation), ""]
    return File(SCRIPT, _TARGET, "\n".join(lines), executable=True)


def _hosts(launch: Launch, count: int) -> File:
    lines = [
        *_heading(launch),
        f"# One host a line, {count} in all: as ssh takes it and, if the others know it by another name, its address.",
        *(f"SET_ME_HOST_{index}" for index in range(count)),
        "",
    ]
    return File(HOSTS, _TARGET, "\n".join(lines))
