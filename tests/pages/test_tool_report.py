"""Reports: what they say is what the tools say, they need nothing from outside, and they are written as a whole."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from estimator.errors import PlanError
from knowledge import figures
from pages.rendering.drawing import svg
from pages.rendering.palette import PALETTE
from pages.results.fields import field_name
from planner.plots import Plot, Series, grouped, stacked
from tools.registry import find

TRAINING: dict[str, Any] = {
    "model": "llama-3.1-8b", "accelerator": "h100", "count": 16, "dataset_tokens": "1B", "seq_len": 4096
}  # fmt: skip
SERVING: dict[str, Any] = {
    "model": "llama-3.1-8b", "accelerator": "h100", "count": 1, "engine": "vllm", "concurrency": 16,
    "input_len": 1000, "output_len": 200, "ttft_slo_ms": 500,
}  # fmt: skip
MISFIT: dict[str, Any] = {"model": "llama-3.1-405b", "accelerator": "h100", "count": 8, "method": "full"}
COMPARED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100",
    "count": 8,
    "over": {"method": ["full", "lora"]},
}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(arguments: dict[str, Any], file: str = "out.html") -> tuple[dict[str, Any], str]:
    found = find("report")({**arguments, "file": file})
    return found, Path(found["file"]).read_text()


class Outside(HTMLParser):
    """Collects what a page would load, run or link to outside itself, and what it never closes."""

    void = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "iframe", "img", "object", "embed"):
            self.loads.append(tag)
        for name in ("src", "href", "xlink:href"):
            target = values.get(name) or "#"
            if not target.startswith(("#", "data:")):
                self.loads.append(target)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("arguments", [TRAINING, SERVING, COMPARED], ids=["training", "serving", "comparison"])
def test_page_needs_nothing_from_outside(arguments: dict[str, Any]) -> None:
    _, page = written(arguments)
    parser = Outside()
    parser.feed(page)
    assert parser.loads == []
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert not re.search(r"url\((?!#)|@import", page)
    for picture in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(picture)
    assert page.count("<svg") >= 2


def test_training_page_says_what_the_tools_say() -> None:
    found, page = written(TRAINING)
    estimate, bill = find("estimate_training")(TRAINING), find("estimate_cost")(TRAINING)
    for text in (
        figures.gib(estimate["memory"]["per_device_bytes"]),
        figures.seconds(estimate["time"]["step_s"]),
        figures.rate(estimate["throughput"]["tokens_per_s"]),
        figures.hours(estimate["run"]["hours"]),
        figures.usd(bill["usd"]),
    ):
        assert text in page
    for section in ("Memory", "Time", "Scaling", "Cost", "Advice", "Assumptions", "Evidence"):
        assert section in found["sections"]
        assert f">{section}</h2>" in page
    for assumption in estimate["assumptions"]:
        assert escape(field_name(assumption["field"])) in page


@pytest.mark.parametrize("file", ["a/out.html", "out.md"])
def test_the_preview_is_what_is_written(file: str) -> None:
    arguments = {**TRAINING, "file": file}
    shown = find("preview_report")(arguments)
    assert not Path(file).exists()
    done = find("report")(arguments)
    texts = {one["path"]: Path(one["path"]).read_text() for one in done["files"]}
    assert {str(Path(shown["folder"]) / one["path"]): one["text"] for one in shown["files"]} == texts
    assert done["file"] == str(Path(file))


def test_own_price_reaches_the_cost() -> None:
    _, page = written({**TRAINING, "usd_per_device_hour": 123.0})
    assert figures.usd(find("estimate_cost")({**TRAINING, "usd_per_device_hour": 123.0})["usd"]) in page


def test_serving_page_says_what_the_tools_say() -> None:
    found, page = written(SERVING)
    estimate = find("estimate_inference")(SERVING)
    assert figures.seconds(estimate["latency"]["tpot_s"]) in page
    assert figures.rate(estimate["throughput"]["output_tokens_per_s"]) in page
    assert "latency limits" in found["verdict"]
    assert "Load" in found["sections"]


DEAR: dict[str, Any] = {**SERVING, "ttft_slo_ms": None, "budget_usd": 10}


@pytest.mark.parametrize("arguments", [TRAINING, DEAR], ids=["training", "serving"])
def test_the_first_of_the_alternatives_is_the_plan_itself(arguments: dict[str, Any]) -> None:
    if arguments is TRAINING:
        rate = find("estimate_training")(TRAINING)["throughput"]["tokens_per_s"]
    else:
        rate = find("estimate_inference")(SERVING)["throughput"]["output_tokens_per_s"]
    found = find("render_report")(arguments)
    rows = found["markdown"].partition("## Alternatives")[2].split("\n|")
    assert f"**{figures.rate(rate)}**" in rows[3]
    # What is broken comes first, and what a search puts before the plan is told behind that.
    assert found["verdict"].startswith("Over budget by") == (arguments is DEAR)
    assert arguments is TRAINING or "Better by its goal: " in found["markdown"]


def test_comparison_has_a_row_for_each_scenario_and_errors_in_place() -> None:
    arguments = {**COMPARED, "over": None, "scenarios": [{"name": "full"}, {"name": "wide", "patch": {"layout.tp": 7}}]}
    found = find("render_report")(arguments)
    rows = [line for line in found["markdown"].splitlines() if line.startswith("|")]
    assert any(row.startswith(("| full", "| **full")) for row in rows)
    assert any(row.startswith("| wide") and "tp" in row for row in rows)


def test_markdown_brings_its_pictures() -> None:
    found, text = written(COMPARED, "side/compare.md")
    links = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert links
    assert {Path("side", link) for link in links} == {Path(file) for file in found["pictures"]}
    for link in links:
        picture = Path("side", link).read_text()
        ET.fromstring(picture)
        assert "var(--" not in picture
    head = next(line for line in text.splitlines() if line.startswith("| Scenario"))
    body = [line for line in text.splitlines() if line.startswith(("| full", "| **full", "| lora", "| **lora"))]
    assert len(body) >= 2
    assert all(len(re.split(r"(?<!\\)\|", line)) == len(head.split("|")) for line in body)


HOSTILE = '<script>alert(1)</script> & "x" $(rm -rf ~) `id` | ](http://evil) \u202e \n # $x^2$'


def test_hostile_names_stay_text() -> None:
    _, page = written({**TRAINING, "name": HOSTILE, "title": HOSTILE})
    parser = Outside()
    parser.feed(page)
    assert parser.loads == []
    assert "&lt;script&gt;" in page
    scenarios = [{"name": HOSTILE}, {"name": "b", "patch": {"method": "lora"}}]
    _, page = written({**COMPARED, "over": None, "scenarios": scenarios}, "hostile.html")
    parser = Outside()
    parser.feed(page)
    assert parser.loads == []
    text = find("render_report")({**TRAINING, "title": HOSTILE})["markdown"]
    assert "\n# $x" not in text
    assert not re.search(r"(?<!\\)\]\(http", text)


def test_files_are_kept_unless_told_otherwise(work: Path) -> None:
    written(TRAINING)
    find("report")({**TRAINING, "file": "out.html"})  # the same content is no conflict
    with pytest.raises(PlanError, match="overwrite"):
        find("report")({**SERVING, "file": "out.html"})
    find("report")({**SERVING, "file": "out.html", "overwrite": True})
    assert [path.name for path in work.iterdir()] == ["out.html"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"file": "../out.html"}, "folder"),
        ({"file": "/etc/out.html"}, "folder"),
        ({"file": "out.docx"}, "file"),
        ({"file": "out.md", "format": "pdf"}, "format"),
        ({"file": "out.html", "layout": 3}, "layout"),
        ({"file": "out.html", "count": 0}, "cluster.count"),
        ({"file": "out.html", "scenarios": []}, "scenarios"),
    ],
)
def test_nothing_is_written_on_an_error(work: Path, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        find("report")(TRAINING | changes)
    assert caught.value.field == field
    assert not list(work.iterdir())


def test_pdf_without_its_library_says_what_is_missing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fpdf", None)
    monkeypatch.delitem(sys.modules, "pages.rendering.pdf", raising=False)
    with pytest.raises(PlanError, match=r"shardwise\[pdf\]"):
        find("report")({**TRAINING, "file": "out.pdf"})
    assert not list(work.iterdir())


@pytest.mark.parametrize("arguments", [TRAINING, MISFIT, SERVING], ids=["training", "misfit", "serving"])
def test_pdf_says_it_all_on_two_pages_before_the_appendix(arguments: dict[str, Any]) -> None:
    pytest.importorskip("fpdf")
    from pypdf import PdfReader

    done = find("report")({**arguments, "file": "out.pdf"})
    document = PdfReader(done["file"])
    texts = [" ".join(page.extract_text().split()) for page in document.pages]
    bookmarks = {str(mark.title): document.get_destination_page_number(mark) or 0
                 for mark in document.outline if not isinstance(mark, list)}  # fmt: skip
    assert 0 < bookmarks["Appendix"] <= 2
    front, behind = " ".join(texts[: bookmarks["Appendix"]]), " ".join(texts[bookmarks["Appendix"] :])
    assert done["verdict"] in front
    for section in ("The plan", "Memory", "Cost", "How sure"):
        assert section in front
    for section in ("Memory by component", "Assumptions", "Evidence", "Reproduce"):
        assert section in behind
        assert section not in front
    assert len(texts) <= 12
    assert all(texts)


def test_the_same_report_is_the_same_pdf() -> None:
    pytest.importorskip("fpdf")
    files = [find("report")({**SERVING, "file": file})["file"] for file in ("a.pdf", "b.pdf")]
    first, second = (Path(file).read_bytes() for file in files)
    assert first.startswith(b"%PDF")
    assert first == second


def test_pdf_takes_any_text() -> None:
    pytest.importorskip("fpdf")
    find("report")({**SERVING, "title": HOSTILE + " 模型 🙂", "name": "x" * 150, "file": "out.pdf"})


def test_default_file_is_named_after_the_plan(work: Path) -> None:
    found = find("report")({**TRAINING, "name": "My run / 1"})
    assert found["file"] == "reports/My-run-1.html"


PLOTS = [
    *grouped("Bars", "x", "y", ["a", "b"], {"one": [1.0, None], "two": [2, 3]}, {"one": ([0.5, None], [2.0, None])}),
    *stacked("Stack", "", "GiB", ["a", "b"], [{"w": 2.0}, None], 1.0, 80.0, "limit <&>"),
    Plot(title="Log", kind="line", x_label="nodes", y_label="tokens/s", x_log=True, y_log=True,
         series=[Series(name="s", x=[1, 2, 4], y=[1e3, 2.1e4, None], low=[900, 1e4, None], high=[2e3, 3e4, None])]),
    Plot(title="Points", kind="scatter", x_label="$a_b$", y_label="y",
         series=[Series(name="s", x=["p", "q"], y=[1, 2])]),
]  # fmt: skip


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.title)
@pytest.mark.parametrize("alone", [False, True])
def test_plots_are_drawn_the_same_every_time(plot: Plot, alone: bool) -> None:
    picture = svg(plot, alone)
    assert picture == svg(plot, alone)
    texts = " ".join(text for element in ET.fromstring(picture).iter() for text in (element.text or "",))
    assert plot.y_label in texts
    assert "mathdefault" not in picture
    assert ("var(--ink)" in picture) == (not alone)


def test_parts_have_the_colours_of_the_pane_and_whole_numbers_no_halves() -> None:
    (plot,) = [plot for plot in PLOTS if plot.kind == "stacked"][:1]
    for places in ((), tuple(range(2, 2 + len(plot.series)))):
        picture = svg(plot, places=places)
        for place in places or range(len(plot.series)):
            assert PALETTE[place % len(PALETTE)] in picture
    few = Plot(title="Nodes", kind="line", x_label="nodes", y_label="tokens/s",
               series=[Series(name="s", x=[1, 2, 3], y=[100000, 200000, 300000])])  # fmt: skip
    texts = {element.text for element in ET.fromstring(svg(few)).iter() if element.text}
    assert {"1", "2", "3", "200,000"} <= texts
    assert not any(text.endswith(".5") for text in texts)
    below = few.model_copy(update={"limit": 400000, "limit_name": "usable"})
    assert {"400,000", "usable"} <= {element.text for element in ET.fromstring(svg(below)).iter() if element.text}
