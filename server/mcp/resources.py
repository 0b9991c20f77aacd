"""What a client can read by address: models, accelerators, saved plans, the tools in full, and the Plan itself.

A kind of resource is one entry of KINDS: its ids, and how one of them is read. Listing, templates, completion and
reading follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Plan
from knowledge.own.files import parsed, read_text
from knowledge.playbook import topics
from knowledge.scenarios import scenarios
from server.work import dumps
from tools.registry import OnDemand
from tools.registry import find as find_tool
from tools.schemas import described

_SCHEME = "shardwise://"
PLAN = f"{_SCHEME}plan"


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
    from knowledge.models.known import models  # read with what estimates, of which the list of tools has no need

    return [row.id for row in models()]


def accelerator_ids(_: Path | None = None) -> list[str]:
    from knowledge.machines.catalogue import accelerators  # as above

    return [row.id for row in accelerators()]


def _model(name: str, _: Path | None) -> str:
    from knowledge.models.catalogue import find_model  # as above

    # The catalogue only: an address is no way to read a config.json on this machine.
    return dumps(find_tool("describe_model")({"model": find_model(name).value.id}))


def _accelerator(name: str, _: Path | None) -> str:
    return dumps(find_tool("describe_hardware")({"accelerator": name}))


def topic_ids(_: Path | None = None) -> list[str]:
    return [topic.id for topic in topics()]


def _topic(name: str, _: Path | None) -> str:
    return dumps(find_tool("search_playbook")({"topic": name, "limit": 200}))


def _saved_plans(root: Path | None) -> dict[str, Path]:
    """Those below the root, the user's scenarios and the ready examples; of two with one name the first."""
    paths: list[Path] = []
    with suppress(OSError):
        below = sorted((root / "plans").glob("*.yaml")) if root else []
        paths = [path for path in below if path.is_file() and root and path.resolve().is_relative_to(root)]
    plans = {path.stem: path for path in paths}
    return plans | {each.name: each.path for each in scenarios() if each.name not in plans}


def _plan(name: str, root: Path | None) -> str:
    plans = _saved_plans(root)
    if name not in plans:
        raise PlanError("plans", f"there is no plan {_short(name)}", nearest(name, plans))
    return Plan.parse(parsed(read_text(plans[name]), "plans")).to_yaml()


def _tool(name: str, _: Path | None) -> str:
    return dumps(described(find_tool(name)))


KINDS = (
    Kind("models", "id", "Model", "Exact dimensions and parameter counts of a model of the catalogue.",
         "application/json", model_ids, _model),
    Kind("hardware", "id", "Accelerator", "Memory, peak rates, links and prices of an accelerator.",
         "application/json", accelerator_ids, _accelerator),
    Kind("plans", "name", "Saved plan", "A saved scenario, a ready example, or plans/NAME.yaml below the root.",
         "application/yaml", lambda root: list(_saved_plans(root)), _plan),
    Kind("playbook", "topic", "Playbook topic", "What experienced engineers do, topic by topic, with sources.",
         "application/json", topic_ids, _topic),
    Kind("tools", "name", "Tool", "One tool with every argument and what it gives, those that are not listed too.",
         "application/json", lambda _: list(OnDemand()), _tool),
)  # fmt: skip


def find(template: str, variable: str) -> Kind | None:
    return next((kind for kind in KINDS if (kind.template, kind.variable) == (template, variable)), None)


def matching(value: str, choices: Iterable[str]) -> list[str]:
    """Choices that hold all words of `value`, those that begin with it first."""
    whole, words = value.casefold(), value.casefold().replace("-", " ").replace("/", " ").split()
    matches = [choice for choice in choices if all(word in choice.casefold() for word in words)]
    return sorted(matches, key=lambda choice: not choice.casefold().startswith(whole))


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
