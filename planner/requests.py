"""The arguments that planning tools share: a whole or partial Plan, and each Plan field under its own flat name.

`{"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}` says the same as the nested Plan. The flat fields are
made from the Plan's own, so there is one definition of each; a flat argument wins over the same field inside `plan`.
Tools for training have the fields of training, tools for serving those of serving, and tools for both have both: there
a field that only serving has makes the plan one for serving.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from estimator.errors import PlanError
from estimator.plan.schema import (
    Cluster,
    Goal,
    Inference,
    Layout,
    Lora,
    Overrides,
    Plan,
    Training,
    check_bools,
    merge,
    plan_error,
)
from knowledge.scenarios import find_scenario
from planner.fields import value_at

# Fields inside the Plan whose own name would be unclear or taken when flat.
_RENAMED = {"rank": "lora_rank", "alpha": "lora_alpha", "targets": "lora_targets", "dropout": "lora_dropout"}
# Of the figures that a user may set only these have flat names; `overrides` takes them all.
_FLAT_OVERRIDES = ("usable_gib", "reserve_gib", "host_gib")
_Sections = tuple[tuple[str, type[BaseModel], tuple[str, ...]], ...]
_TRAINING: _Sections = (
    ("workload", Training, tuple(name for name in Training.model_fields if name not in ("kind", "lora"))),
    ("workload.lora", Lora, tuple(Lora.model_fields)),
    ("cluster", Cluster, tuple(Cluster.model_fields)),
    ("layout", Layout, tuple(Layout.model_fields)),
    ("goal", Goal, tuple(Goal.model_fields)),
)
# Of layout and goal only what has a meaning for serving.
_SERVING: _Sections = (
    ("workload", Inference, tuple(name for name in Inference.model_fields if name != "kind")),
    ("cluster", Cluster, tuple(Cluster.model_fields)),
    ("layout", Layout, ("tp", "pp", "ep", "dp")),
    ("goal", Goal, ("provider",)),
)


Request = TypeVar("Request", bound=BaseModel)


# What nobody trains, serves or pays lies far inside; beyond, arithmetic overflows.
_LEAST, _MOST = 1e-9, 1e42
_DEEPEST = 64
_ACCELERATOR = "accelerator"
# A surrogate by itself: JSON can say one, and no file, database or terminal takes it.
_HALF = re.compile(r"[\ud800-\udfff]")
_TINY = re.compile(r"[+-]?[\d.]{1,20}e-?\d{1,6}", re.IGNORECASE)


def parsed(request: type[Request], arguments: Mapping[str, Any]) -> Request:
    """Plain arguments as a request. Raises PlanError naming the argument and what is wrong with it."""
    if not isinstance(arguments, Mapping):
        raise PlanError("arguments", f"must be a mapping of arguments, not {type(arguments).__name__}")
    _refuse_unfit(arguments)
    check_bools(request, arguments)
    try:
        return request.model_validate(_placed(arguments, "count" in request.model_fields))
    except ValidationError as error:
        refused = plan_error(error, request)
        raise _of_target(refused, arguments.get(refused.field)) or refused from None


# What a run is started by, by the kind of run that it is said of.
_STARTED_WITH: dict[str, Literal["training", "inference"]] = {"framework": "training", "engine": "inference"}


def _of_target(refused: PlanError, value: object) -> PlanError | None:
    """The refusal of a launch target where a framework or an engine belongs, with those that it starts."""
    from launchers.choice import started_by  # loads NumPy
    from launchers.targets import TARGETS  # as above

    what = refused.field.rpartition(".")[2]
    kind = _STARTED_WITH.get(what)
    target = str(value).strip().lower()
    if kind is None or target not in TARGETS:
        return None
    if kind not in TARGETS[target].kinds:
        return PlanError(refused.field, f"{target} is a launch target, and not one for {kind}", refused.valid)
    names = started_by(target, kind)
    targets = f"`shardwise configs` writes its files (--targets {target})"
    if not names:
        return PlanError(refused.field, f"{target} is a launch target, which starts any {what}: {targets}")
    problem = f"{target} is a launch target and no {what}: it runs on {names[0]}, and {targets}"
    return PlanError(refused.field, problem, names)


HERE = "here"
"""What stands for this machine's devices in a plan: cluster.accelerator=here."""


def _here() -> tuple[str, int]:
    from planner.measuring.here import here  # has all of measure behind it, for one who asks for this machine

    return here()


def _placed(arguments: Mapping[str, Any], counted: bool = True) -> dict[str, Any]:
    """The arguments with this machine's devices where they say "here", and how many there are where no number stands
    beside it and one can (`counted`). Raises PlanError where nothing is known of them."""
    placed: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == _ACCELERATOR and value == HERE:
            placed[name], count = _here()
            if counted and arguments.get("count") is None:
                placed["count"] = count
        elif name == f"{_ACCELERATOR}s" and isinstance(value, list):
            placed[name] = [_here()[0] if each == HERE else each for each in value]
        elif isinstance(value, Mapping):
            placed[name] = _placed(value)
        elif name not in placed or value is not None:
            placed[name] = value
    return placed


def _refuse_unfit(arguments: Mapping[str, Any]) -> None:
    """PlanError for what no argument is, whichever face it came through: containers that lie in each other too deeply,
    numbers that are none or beyond all measure, halves of characters; without recursion, as it may be by thousands."""
    layer: list[tuple[str, Any]] = [(str(name), value) for name, value in arguments.items()]
    for _ in range(_DEEPEST):
        inner: list[tuple[str, Any]] = []
        for name, value in layer:
            if isinstance(value, Mapping):
                inner += ((name, each) for each in value.values())
            elif isinstance(value, list | tuple):
                inner += ((name, each) for each in value)
            elif problem := _beyond_measure(value):
                raise PlanError(name, problem)
        if not (layer := inner):
            return
    raise PlanError(layer[0][0], f"is nested deeper than {_DEEPEST} levels")


def _beyond_measure(value: Any) -> str:
    """What is wrong with a number, or a text that is one or none at all; '' of anything else."""
    if isinstance(value, str):
        if _HALF.search(value):
            return "is not text in UTF-8"
        if _TINY.fullmatch(value.strip()):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return f"got {value}, but it must be a finite number"
    if abs(value) > _MOST:
        return "is a number too large to be meant"
    return "" if abs(value) >= _LEAST else f"got {value}, a number too near to zero to be meant"


def flag_of(name: str) -> str:
    """The command line's flag of a flat field."""
    return "--" + name.replace("_", "-")


def _flat_fields(sections: _Sections) -> Iterator[tuple[str, str, FieldInfo]]:
    """(flat name, dotted Plan path, Plan field) of every field that can be given flat."""
    for section, model, names in sections:
        for name in names:
            yield _RENAMED.get(name, name), f"{section}.{name}", model.model_fields[name]
    for name in _FLAT_OVERRIDES:
        yield name, f"overrides.{name}", Overrides.model_fields[name]


def _paths(sections: _Sections) -> dict[str, str]:
    """Dotted Plan paths by flat name; `overrides` stands before its own fields, so that those win over it."""
    whole = {name: name for name in ("model", "name", "overrides")}
    return whole | {flat: path for flat, path, _ in _flat_fields(sections)}


FLAT_PATHS: dict[str, str] = _paths(_TRAINING)
"""Of the fields that tools for training have."""
SERVING_PATHS: dict[str, str] = _paths(_SERVING)
"""Of the fields that tools for serving have."""
ALL_PATHS: dict[str, str] = FLAT_PATHS | SERVING_PATHS
FLAT_NAMES: dict[str, str] = {path: name for name, path in ALL_PATHS.items()}
"""The flat name of each path."""
LATENCY_LIMITS = ("ttft_slo_ms", "tpot_slo_ms")
"""Flat names of the limits that every request is to meet."""
ONLY_SERVING = frozenset(SERVING_PATHS) - frozenset(FLAT_PATHS)
"""Flat names of what a plan for training does not have; they are the names inside the workload too."""
ONLY_TRAINING = frozenset(Training.model_fields) - frozenset(Inference.model_fields)


def of_scenario(plan: object) -> object:
    """The plan of the scenario that a name means; anything else as it is."""
    if not isinstance(plan, str):
        return plan
    try:
        return find_scenario(plan, "plan").data("plan")
    except PlanError as error:
        # pydantic takes plain words, and names the field itself.
        raise ValueError(str(error).removeprefix("plan: ")) from None


class PlanArguments(BaseModel):
    """Base of the planning requests; `to_plan` gives the Plan that they describe."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    paths: ClassVar[Mapping[str, str]] = FLAT_PATHS

    plan: Annotated[
        dict[str, Any] | None,
        BeforeValidator(of_scenario, json_schema_input_type=dict[str, Any] | str | None),
    ] = Field(None, description="A whole or partial Plan, or the name of a saved scenario; flat arguments win over it.")

    def to_plan(self) -> Plan:
        """Raises PlanError as Plan.parse does, or when no model is named."""
        data = self._data()
        if data.get("model") is None:
            raise PlanError(
                "model", "is required: name a catalogue model or a config.json", ["meta-llama/Llama-3.1-8B"]
            )
        try:
            return Plan.parse(data)
        except PlanError as refused:
            raise _of_target(refused, value_at(data, refused.field)) or refused from None

    def _data(self) -> dict[str, Any]:
        """The plan's data with the flat arguments laid over it."""
        flat = {self.paths[name]: getattr(self, name) for name in self.paths if name in self.model_fields_set}
        return merge(merge({}, self.plan or {}), {path: value for path, value in flat.items() if value is not None})


class ServingArguments(PlanArguments):
    """Base of the requests of tools for serving: the plan is one for serving unless it says otherwise."""

    paths: ClassVar[Mapping[str, str]] = SERVING_PATHS

    def _data(self) -> dict[str, Any]:
        return _served(super()._data())


class EitherArguments(PlanArguments):
    """Base of the requests of tools for both: a field that only serving has makes the plan one for serving."""

    paths: ClassVar[Mapping[str, str]] = ALL_PATHS

    def _data(self) -> dict[str, Any]:
        data = super()._data()
        workload = data.get("workload")
        fields = workload if isinstance(workload, dict) else {}
        serves = fields.get("kind") == "inference" or any(name in ONLY_SERVING for name in fields)
        return _served(data) if serves or self.asks_serving() else data

    def asks_serving(self) -> bool:
        """Whether the arguments beside the plan are of serving; tools add those that are no fields of a plan."""
        return False


def _served(data: dict[str, Any]) -> dict[str, Any]:
    """The plan's data as one for serving. Raises PlanError where it is for training in so many words."""
    workload = data.setdefault("workload", {})
    if not isinstance(workload, dict):
        return data
    kind = workload.setdefault("kind", "inference")
    of = {"training": (ONLY_SERVING, "serving", "inference"), "inference": (ONLY_TRAINING, "training", "training")}
    foreign, what, other = of.get(kind, (frozenset(), "", ""))
    if only := next((name for name in workload if name in foreign), None):
        problem = f"is a field of {what}, but the plan is for {'training' if kind == 'training' else 'serving'}"
        raise PlanError(f"workload.{only}", problem, [f"kind={other}"])
    return data


def _optional(info: FieldInfo) -> tuple[Any, Any]:
    """The Plan field without its constraints' default: given or not given. The Plan itself checks the bounds."""
    annotation: Any = info.annotation
    for reader in info.metadata:
        # What reads other spellings of a name comes along.
        annotation = Annotated[annotation, reader] if isinstance(reader, BeforeValidator) else annotation
    return annotation | None, Field(None, description=info.description)


_WHOLE: dict[str, Any] = {
    "model": (str | dict[str, Any] | None, Field(None, description=Plan.model_fields["model"].description)),
    "name": (str | None, Field(None, description="A name for the plan.")),
}


def _overrides(names: Iterable[str]) -> tuple[Any, Any]:
    return (
        dict[str, Any] | None,
        Field(
            None,
            description="Figures that you know better than those estimated, of one device, of links one way: "
            + ", ".join(names),
        ),
    )


if TYPE_CHECKING:
    PlanRequest = PlanArguments
    ServingRequest = ServingArguments
    EitherRequest = EitherArguments
else:
    _TRAINED = {flat: _optional(info) for flat, _, info in _flat_fields(_TRAINING)}
    _SERVED = {flat: _optional(info) for flat, _, info in _flat_fields(_SERVING)}
    # Memory by component and MFU are of training.
    _LINKS = [
        name
        for name in Overrides.model_fields
        if name in _FLAT_OVERRIDES or not (name == "mfu" or name.endswith("_gib"))
    ]
    PlanRequest = create_model(
        "PlanRequest",
        __base__=PlanArguments,
        **_WHOLE,
        overrides=_overrides(Overrides.model_fields),
        **_TRAINED,
    )
    ServingRequest = create_model(
        "ServingRequest", __base__=ServingArguments, **_WHOLE, overrides=_overrides(_LINKS), **_SERVED
    )
    _BOTH = _TRAINED | {name: field for name, field in _SERVED.items() if name in ONLY_SERVING}
    # Training and serving each have a field of this name.
    _BOTH["cuda_graph"] = (_TRAINED["cuda_graph"][0] | _SERVED["cuda_graph"][0], _TRAINED["cuda_graph"][1])
    EitherRequest = create_model(
        "EitherRequest", __base__=EitherArguments, **_WHOLE, overrides=_overrides(Overrides.model_fields), **_BOTH
    )
