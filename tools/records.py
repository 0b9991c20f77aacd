"""What is kept: scenarios, the user's own rows, the playbook."""

from __future__ import annotations

from planner.advice import playbook
from planner.advice.playbook import PlaybookFound, PlaybookRequest
from planner.records import catalogue, scenarios
from planner.records.catalogue import (
    AddedRow,
    CatalogueList,
    CatalogueQuestion,
    HardwareToAdd,
    HardwareToShow,
    ModelToAdd,
    ModelToShow,
    PriceToAdd,
    PriceToShow,
    ShownRow,
)
from planner.records.scenarios import (
    DeletedScenario,
    DeleteRequest,
    DiffRequest,
    ListRequest,
    LoadedScenario,
    LoadRequest,
    RenderedScenario,
    RenderScenarioRequest,
    SavedScenario,
    SaveRequest,
    ScenarioDiff,
    ScenarioList,
)
from tools.registry import tool


@tool(title="Show a plan as a scenario file", read_only=True)
def render_scenario(request: RenderScenarioRequest) -> RenderedScenario:
    """A plan as the text of a scenario file, YAML or JSON, with its figures. Use it to export a plan or to show what
    save_scenario would write; nothing is saved."""
    return scenarios.render_scenario(request)


@tool(title="Save a scenario", read_only=False, preview="render_scenario")
def save_scenario(request: SaveRequest) -> SavedScenario:
    """Keeps a plan under a name in the user's data folder, so that it can be loaded, compared and named as plan later.
    Use it for "save this plan as …" and, with text, to import a plan. An existing one stays unless overwrite is set."""
    return scenarios.save_scenario(request)


@tool(title="List scenarios", read_only=True)
def list_scenarios(request: ListRequest) -> ScenarioList:
    """The saved plans and the ready examples by name. Use it for "what have I saved", "show my scenarios" or "give me
    an example"; figures=true estimates each."""
    return scenarios.list_scenarios(request)


@tool(title="Load a scenario", read_only=True)
def load_scenario(request: LoadRequest) -> LoadedScenario:
    """A saved plan or a ready example, ready to be passed on as plan, and as text to export it. Use it for "open my
    scenario …"; other tools take the scenario's name as plan, too."""
    return scenarios.load_scenario(request)


@tool(title="Delete a scenario", read_only=False, preview="load_scenario")
def delete_scenario(request: DeleteRequest) -> DeletedScenario:
    """Deletes a saved plan. Use it only when the user asked for it; ready examples stay."""
    return scenarios.delete_scenario(request)


@tool(title="Compare two scenarios field by field", read_only=True)
def diff_scenarios(request: DiffRequest) -> ScenarioDiff:
    """Which fields of two plans differ, as given and as completed, and what that does to memory, step time, tokens/s,
    MFU, hours and USD (or latency and tokens/s of serving). Use it for "what is different between … and …"."""
    return scenarios.diff_scenarios(request)


@tool(title="List the catalogue", read_only=True)
def list_catalogue(request: CatalogueQuestion) -> CatalogueList:
    """Accelerators, models or prices that are known, the user's own among them (source: yours), and the user's files
    that cannot be used. Use it for "which GPUs do you know", "list Qwen models" and "why is my hardware not there"."""
    return catalogue.list_catalogue(request)


@tool(title="Show an accelerator of your own as a file", read_only=True)
def preview_hardware(request: HardwareToShow) -> ShownRow:
    """What add_hardware would write, checked: the file and what is taken for figures left open. Nothing is written."""
    return catalogue.preview_hardware(request)


@tool(title="Add an accelerator of your own", read_only=False, preview="preview_hardware")
def add_hardware(request: HardwareToAdd) -> AddedRow:
    """Adds an accelerator that the catalogue does not have, or has otherwise, to the user's own: from then on plans can
    name it. `like` takes everything that is left out from one of the catalogue; without it give vendor, memory,
    bandwidth and a matrix rate. Only figures that the user gave."""
    return catalogue.add_hardware(request)


@tool(title="Show a model of your own as a file", read_only=True)
def preview_model(request: ModelToShow) -> ShownRow:
    """What add_model would write, checked, with the parameters counted. Nothing is written."""
    return catalogue.preview_model(request)


@tool(title="Add a model of your own", read_only=False, preview="preview_model")
def add_model(request: ModelToAdd) -> AddedRow:
    """Adds a model to the user's own under an id that plans can name, from the fields of its Hugging Face config or the
    path of its config.json. For a single question a config can be passed as model without adding it."""
    return catalogue.add_model(request)


@tool(title="Show a price of your own as a file", read_only=True)
def preview_price(request: PriceToShow) -> ShownRow:
    """What add_price would write, checked. Nothing is written."""
    return catalogue.preview_price(request)


@tool(title="Add a price of your own", read_only=False, preview="preview_price")
def add_price(request: PriceToAdd) -> AddedRow:
    """Adds what a machine costs the user (USD per hour for the whole instance, on demand or spot) to the price book
    that costs and recommendations are taken from; a plan can name its provider. Only prices that the user gave."""
    return catalogue.add_price(request)


@tool(title="Search the playbook", read_only=True)
def search_playbook(request: PlaybookRequest) -> PlaybookFound:
    """Practical knowledge on training and serving LLMs at scale, with sources: parallelism, ZeRO and FSDP, OOM,
    precision, networks, NCCL and Slurm settings, fine-tuning, troubleshooting (hangs, NaN, slow nodes), serving. Use it
    for "how do I set", "what is NCCL_IB_HCA for" and practice that needs no plan; advise has tips on a plan."""
    return playbook.search_playbook(request)
