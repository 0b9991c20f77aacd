"""What a client can read by address: models, accelerators, and the plans saved below the root.

A kind of resource is one entry of KINDS: its ids, and how one of them is read. Listing, templates, completion and
reading follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from estimator.errors import PlanError, nearest
from tools.mcp_calls import dumps

_SCHEME = "shardwise://"
_LARGEST_PLAN_BYTES = 200_000


@dataclass(frozen=True)
class Kind:
    """Resources of one kind. `ids` and `read` get the root that plans are saved below (None: there is none)."""

    name: str
    variable: str
    title: str
    description: str
    mime: str
    ids: Callable[[Path | None], list[str]]
    read: Callable[[str, Path | None], str]

    @property
    def template(self) -> str:
        return f"{_SCHEME}{self.name}/{{{self.variable}}}"

    def uri(self, id: str) -> str:
        return f"{_SCHEME}{self.name}/{quote(id, safe='/')}"

    def id_of(self, uri: str) -> str | None:
        """The id in an address of this kind; it may hold slashes, written as they are or as %2F."""
        start = f"{_SCHEME}{self.name}/"
        return unquote(uri[len(start) :]) or None if uri.startswith(start) else None


def model_ids(_: Path | None = None) -> list[str]:
    from knowledge.models import models

    return [row.id for row in models()]


def accelerator_ids(_: Path | None = None) -> list[str]:
    from knowledge.hardware import accelerators

    return [row.id for row in accelerators()]


def _model(name: str, _: Path | None) -> str:
    from knowledge.models import find_model
    from tools.registry import find

    # The catalogue only: an address is no way to read a config.json on this machine.
    return dumps(find("describe_model")({"model": find_model(name).value.id}))


def _accelerator(name: str, _: Path | None) -> str:
    from tools.registry import find

    return dumps(find("describe_hardware")({"accelerator": name}))


def _saved_plans(root: Path | None) -> dict[str, Path]:
    if root is None:
        return {}
    try:
        found = sorted((root / "plans").glob("*.yaml"))
        return {path.stem: path for path in found if path.is_file() and path.resolve().is_relative_to(root)}
    except OSError:
        return {}


def _plan(name: str, root: Path | None) -> str:
    import yaml

    from estimator.plan import Plan

    plans = _saved_plans(root)
    if name not in plans:
        where = "this server has no folder of plans (--root)" if root is None else f"no plan in {root / 'plans'}"
        raise PlanError("plans", f"{_short(name)}: {where}" if not plans else f"there is no plan {_short(name)}",
                        nearest(name, plans))  # fmt: skip
    try:
        with plans[name].open("rb") as file:
            text = file.read(_LARGEST_PLAN_BYTES + 1)
        if len(text) > _LARGEST_PLAN_BYTES:
            raise PlanError("plans", f"{name} is too large for a plan")
        return yaml.safe_dump(Plan.from_yaml(text.decode()).given(), sort_keys=False)
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError("plans", f"{name} cannot be read: {error}") from None


KINDS = (
    Kind("models", "id", "Model", "Exact dimensions and parameter counts of a model of the catalogue.",
         "application/json", model_ids, _model),
    Kind("hardware", "id", "Accelerator", "Memory, peak rates, links and prices of an accelerator.",
         "application/json", accelerator_ids, _accelerator),
    Kind("plans", "name", "Saved plan", "A plan saved as plans/NAME.yaml below the server's root.",
         "application/yaml", lambda root: list(_saved_plans(root)), _plan),
)  # fmt: skip


def find(template: str, variable: str) -> Kind | None:
    return next((kind for kind in KINDS if (kind.template, kind.variable) == (template, variable)), None)


def matching(value: str, choices: Iterable[str]) -> list[str]:
    """Choices that hold all words of `value`, those that begin with it first."""
    whole, words = value.casefold(), value.casefold().replace("-", " ").replace("/", " ").split()
    found = [choice for choice in choices if all(word in choice.casefold() for word in words)]
    return sorted(found, key=lambda choice: not choice.casefold().startswith(whole))


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
