"""What is kept: scenarios, the user's own rows, the playbook."""

from __future__ import annotations

from typing import Any

from planner.asked.facts import PlaybookRequest
from planner.asked.lookups import (
    CatalogueQuestion,
    HardwareToAdd,
    HardwareToShow,
    ModelToAdd,
    ModelToShow,
    PriceToAdd,
    PriceToShow,
)
from planner.asked.scenarios import (
    DeleteRequest,
    DiffRequest,
    ListRequest,
    LoadRequest,
    RenderScenarioRequest,
    SaveRequest,
)
from tools.registry import tool


@tool(title="Show a plan as a scenario file", read_only=True, by="planner.records.scenarios")
def render_scenario(request: RenderScenarioRequest) -> Any:
    """A plan as the text of a scenario file, YAML or JSON, with its figures. Use it to export a plan or to show what
    save_scenario would write; nothing is saved."""


@tool(title="Save a scenario", read_only=False, preview="render_scenario", by="planner.records.scenarios")
def save_scenario(request: SaveRequest) -> Any:
    """Keeps a plan under a name in the user's data folder, so that it can be loaded, compared and named as plan later.
    Use it for "save this plan as …" and, with text, to import a plan. An existing one stays unless overwrite is set."""


@tool(title="List scenarios", read_only=True, by="planner.records.scenarios")
def list_scenarios(request: ListRequest) -> Any:
    """The saved plans and the ready examples by name. Use it for "what have I saved", "show my scenarios" or "give me
    an example"; figures=true estimates each."""


@tool(title="Load a scenario", read_only=True, by="planner.records.scenarios")
def load_scenario(request: LoadRequest) -> Any:
    """A saved plan or a ready example, ready to be passed on as plan, and as text to export it. Use it for "open my
    scenario …"; other tools take the scenario's name as plan, too."""


@tool(title="Delete a scenario", read_only=False, preview="load_scenario", by="planner.records.scenarios")
def delete_scenario(request: DeleteRequest) -> Any:
    """Deletes a saved plan. Use it only when the user asked for it; ready examples stay."""


@tool(title="Compare two scenarios field by field", read_only=True, by="planner.records.scenarios")
def diff_scenarios(request: DiffRequest) -> Any:
    """Which fields of two plans differ, as given and as completed, and what that does to memory, step time, tokens/s,
    MFU, hours and USD (or latency and tokens/s of serving). Use it for "what is different between … and …"."""


@tool(title="List the catalogue", read_only=True, by="planner.records.catalogue")
def list_catalogue(request: CatalogueQuestion) -> Any:
    """Accelerators, models or prices that are known, the user's own among them (source: yours), and the user's files
    that cannot be used. Use it for "which GPUs do you know", "list Qwen models" and "why is my hardware not there"."""


@tool(title="Show an accelerator of your own as a file", read_only=True, by="planner.records.catalogue")
def preview_hardware(request: HardwareToShow) -> Any:
    """What add_hardware would write, checked: the file and what is taken for figures left open. Nothing is written."""


@tool(
    title="Add an accelerator of your own", read_only=False, preview="preview_hardware", by="planner.records.catalogue"
)
def add_hardware(request: HardwareToAdd) -> Any:
    """Adds an accelerator that the catalogue does not have, or has otherwise, to the user's own: from then on plans can
    name it. `like` takes everything that is left out from one of the catalogue; without it give vendor, memory,
    bandwidth and a matrix rate. Only figures that the user gave."""


@tool(title="Show a model of your own as a file", read_only=True, by="planner.records.catalogue")
def preview_model(request: ModelToShow) -> Any:
    """What add_model would write, checked, with the parameters counted. Nothing is written."""


@tool(title="Add a model of your own", read_only=False, preview="preview_model", by="planner.records.catalogue")
def add_model(request: ModelToAdd) -> Any:
    """Adds a model to the user's own under an id that plans can name, from the fields of its Hugging Face config or the
    path of its config.json. For a single question a config can be passed as model without adding it."""


@tool(title="Show a price of your own as a file", read_only=True, by="planner.records.catalogue")
def preview_price(request: PriceToShow) -> Any:
    """What add_price would write, checked. Nothing is written."""


@tool(title="Add a price of your own", read_only=False, preview="preview_price", by="planner.records.catalogue")
def add_price(request: PriceToAdd) -> Any:
    """Adds what a machine costs the user (USD per hour for the whole instance, on demand or spot) to the price book
    that costs and recommendations are taken from; a plan can name its provider. Only prices that the user gave."""


@tool(title="Search the playbook", read_only=True, by="planner.advice.playbook")
def search_playbook(request: PlaybookRequest) -> Any:
    """Practical knowledge on training and serving LLMs at scale, with sources: parallelism, ZeRO and FSDP, OOM,
    precision, networks, NCCL and Slurm settings, fine-tuning, troubleshooting (hangs, NaN, slow nodes), serving. Use it
    for "how do I set", "what is NCCL_IB_HCA for" and practice that needs no plan; advise has tips on a plan."""
