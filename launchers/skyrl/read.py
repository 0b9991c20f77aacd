"""SkyRL's trainer by its key=value words, which mean what verl's do. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.shell.options import options, overrides
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table
from launchers.verl.read import read_as

_PROGRAM = "skyrl"
_TOKENS, _PLACE = "trainer.max_tokens_per_microbatch", "trainer.placement"


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys = Keys(setting.file)
    arguments, _ = options(setting.file, overrides(keys, start.words))
    for item in arguments.items.values():
        setting.findings.leave(item, "is no word of its configuration")
    _placed(keys, setting.findings)
    if (as_number(keys.look(_TOKENS)) or -1) > 0:
        keys.adopt(keys.items[_TOKENS], "actor_rollout_ref.actor.use_dynamic_bsz")
    else:
        keys.take(_TOKENS)
    read_as(_PROGRAM, keys, setting.findings)
    return table(f"{_PROGRAM}/fields")["title"]


def _placed(keys: Keys, findings: Findings) -> None:
    """Engines share the devices of all roles unless they have their own; a critic with devices of its own, too."""
    shared = keys.take(f"{_PLACE}.colocate_all")
    if shared is None or is_set(shared):
        return
    findings.put("workload.rollout", "separate", Item(keys.file, shared.key, "devices of their own", shared.line))
    if keys.look("trainer.algorithm.advantage_estimator") == "gae":
        why = "gives the critic devices of its own, which is not modelled; the policy's alone are those of stage grpo"
        findings.block("workload.stage", shared, why)
    beside = keys.take(f"{_PLACE}.colocate_policy_ref")
    if beside is not None and not is_set(beside):
        findings.warn(f"{beside.origin}: the reference has devices of its own, and is counted beside the policy")


COMMANDS = {_PROGRAM: read_command}
MODULES = {"skyrl.train.entrypoints.main_base": _PROGRAM, "skyrl_train.entrypoints.main_base": _PROGRAM}
