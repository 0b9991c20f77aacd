"""What a page is made of. Results become blocks here in pages/, and blocks become text in pages/rendering/terminal.py,
pages/rendering/markdown.py and pages/rendering/html.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.figures import with_interval
from planner.plots import Plot

Row = tuple[str, str] | tuple[str, str, str]
"""A label, its value and, where there is one, the interval of that."""


NO_FILES = re.compile(r"(?:^|(?<=\. ))((?:Shardwise writes no|No) launch files (?:[^.]|\.(?! |$))+\.)(?: |$)")


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence, and what is told with it in a `more`; `good` colours it, None leaves it plain, and
    `beware` says that it holds with a doubt: tight, or beyond what was measured."""

    text: str
    good: bool | None = None
    more: str = ""
    beware: bool = False

    def __post_init__(self) -> None:
        """That no files start a plan, or say it, is told before all else."""
        if match := NO_FILES.search(self.more):
            object.__setattr__(self, "text", f"{match[1]} {self.text}")
            object.__setattr__(self, "more", (self.more[: match.start()] + self.more[match.end() :]).strip())

    @property
    def tone(self) -> str:
        """good, beware, bad, or nothing."""
        return "bad" if self.good is False else "beware" if self.beware else "good" if self.good else ""


class Foremost(Headline):
    """A verdict that stands before the others of a page, wherever it came from."""


@dataclass(frozen=True)
class Figures:
    """Labelled values."""

    rows: Sequence[Row]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """The columns named in `right` hold numbers, those in `optional` go first where it is narrow; heads in `names` are
    names, written as they are. The rows of the places in `strong` stand out."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()
    title: str = ""
    optional: Sequence[str] = ()
    strong: Sequence[int] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Note:
    """Sentences under a title; `quiet` ones are for whoever wants to know more."""

    title: str
    items: Sequence[str]
    quiet: bool = False


@dataclass(frozen=True)
class Text:
    """Text that keeps its lines, such as a file; of a document, which is Markdown, `verdict` says in a line what it
    comes to."""

    text: str
    title: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class Prose:
    """Markdown, such as an answer."""

    markdown: str


@dataclass(frozen=True)
class Aside(Prose):
    """Prose of a lead that gives way first where lines are short: it stands last, before what can be said next."""


@dataclass(frozen=True)
class Chart:
    """A plot: bars or curves, drawn where pictures were asked for. `places` of its series in the palette where they
    are not those in the plot: a part keeps its colour however many others there are."""

    plot: Plot
    places: Sequence[int] = ()


@dataclass(frozen=True)
class Details:
    """Blocks under a title of their own: what lies behind the first ones, or a section of a report."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Folded:
    """Blocks of the second rank: details, which a face shows where somebody asks for them. All others are the lead."""

    blocks: Sequence[Block]


@dataclass(frozen=True)
class Brief:
    """Parts of the details in short: the first lines have them, and where the details are shown they say it in full."""

    blocks: Sequence[Block]


@dataclass(frozen=True)
class Steps:
    """What can be said next, each as a person would say it; a lead ends with it."""

    sentences: Sequence[str]

    @property
    def line(self) -> str:
        """'Next: “write the files” · “make it faster”'."""
        return f"{NEXT} {' · '.join(f'“{text}”' for text in self.sentences)}"


NEXT, READ_AS, UNREAD = "Next:", "Assumed:", "I could not place "
"""How what can be said next, how words were read, and what was not, begin in a lead."""
DECIDES = "Key assumption"
"""How a lead begins to say what decides it."""
BEFORE, CHANGED = "Before → now", "Changed"
"""How a lead begins to say what a follow-up moved, and what is set otherwise."""


def capitalised(words: str) -> str:
    """The words as a sentence begins; names keep their letters, and so does one with a digit, or of a field."""
    first = words.partition(" ")[0]
    return words if any(map(str.isdigit, first)) or "_" in first else f"{words[:1].upper()}{words[1:]}"


def offered(answer: str) -> list[str]:
    """What the text of an answer offers to say next."""
    line = next((line for line in answer.splitlines() if line.startswith(NEXT)), "")
    return [part.partition("”")[0] for part in line.split("“")[1:]]


Block = Headline | Figures | Table | Note | Text | Prose | Chart | Details | Folded | Brief | Steps


def ranked(blocks: Sequence[Block]) -> tuple[list[Block], list[Block]]:
    """The lead of a page and its details, each in the order in which they stand in it."""
    lead: list[Block] = []
    details: list[Block] = []
    for block in blocks:
        if isinstance(block, Folded):
            front, behind = ranked(block.blocks)
            details += [*front, *behind]
        elif isinstance(block, Brief):
            lead += block.blocks
        else:
            lead.append(block)
    return sorted(lead, key=_place), details


def _place(block: Block) -> int:
    return 0 if isinstance(block, Foremost) else 2 if isinstance(block, Aside) else 3 if isinstance(block, Steps) else 1


def unfolded(blocks: Sequence[Block]) -> list[Block]:
    """A page with its details, each of its parts once."""
    lead, details = ranked([block for block in blocks if not isinstance(block, Brief)])
    return [*lead, *details]


def value_of(row: Row) -> str:
    """The value of a labelled row with its interval."""
    return with_interval(row[1], row[2] if len(row) > 2 else "")
