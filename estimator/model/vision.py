"""Images of a vision-language model: how many tokens one is by the model's own rule, and the tower that reads it.

Rules are those of the image processors of transformers; lengths are in pixels, sizes are (width, height).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

_MOST_STRETCHED = 200.0
"""Sides of an image may differ by this factor at most (transformers, smart_resize)."""
_BIASES_OF_WIDTH = 5
"""Of a layer: queries, keys, values, output and the MLP's last (transformers, Qwen2VLVisionBlock)."""


@dataclass(frozen=True)
class ImageRule:
    """How an image becomes tokens. One token stands for a square of `cell` pixels a side, `merge` x `merge` patches.

    `area`: both sides to the nearest multiple of a cell, with `least_pixels` to `most_pixels` (Qwen2-VL, smart_resize).
    `shrink`: within `longest` a side and `most_pixels`, never enlarged, then padded to whole cells (Pixtral; Kimi-VL).
    `budget`: as many cells as `most_pixels` hold, whatever the image's own size (Gemma 4).
    `canvas`: tiles of `tile` pixels a side, `most_tiles` at most, on the smallest canvas that does not shrink the image
    (Llama 4); `aspect`: on that of the nearest shape (InternVL); both with the whole image as one tile more.
    `fixed`: every image is scaled to `tile` pixels a side (Gemma 3).
    `crossed`: tiles as of `canvas`, without the whole image, whose patches and `each_tile` more vectors are keys of
    layers of cross-attention; in the text an image is one token (Llama 3.2 Vision).
    `around`, `each_row` and `each_tile` are marks: beside an image, at the end of each row of cells, and of each tile.
    A video is read in groups of `frames` frames, with `video_least` to `video_pixels` in all its frames together, or,
    where `by_frame`, in each (0: how videos are read is not known); `marked_once`: its marks are around the whole.
    """

    kind: Literal["area", "shrink", "budget", "canvas", "aspect", "fixed", "crossed"]
    patch: int
    merge: int
    least_pixels: int = 0
    most_pixels: int = 0
    longest: int = 0
    tile: int = 0
    most_tiles: int = 1
    around: int = 0
    each_row: int = 0
    each_tile: int = 0
    frames: int = 1
    video_least: int = 0
    video_pixels: int = 0
    by_frame: bool = False
    marked_once: bool = False

    @property
    def cell(self) -> int:
        return self.patch * self.merge

    @property
    def sees_video(self) -> bool:
        return self.video_pixels > 0


@dataclass(frozen=True)
class VisionTower:
    """The encoder of images and what joins it to the language model: all `parameters`, and layers of `hidden` width
    whose MLP is `width` wide (`gated`: three matrices, not two)."""

    rule: ImageRule
    parameters: int
    layers: int
    hidden: int
    width: int
    gated: bool
    source: str


@dataclass(frozen=True)
class Seen:
    """What images come to: tokens of the language model, patches that the tower reads, and keys of layers of
    cross-attention."""

    tokens: int
    patches: int
    keys: int = 0


def image(rule: ImageRule, width: int, height: int) -> Seen:
    """One image of that size."""
    if rule.kind == "crossed":
        columns, rows = _grid(rule, width, height)
        tile = (rule.tile // rule.cell) ** 2
        return Seen(1, columns * rows * tile, columns * rows * (tile + rule.each_tile))
    if rule.kind in ("canvas", "aspect", "fixed"):
        return _tiled(rule, width, height)
    columns, rows = _cells(rule, width, height)
    return Seen(columns * rows + rule.each_row * rows + rule.around, columns * rows * rule.merge**2)


def video(rule: ImageRule, frames: int, width: int, height: int) -> Seen:
    """Frames of one video, those that are sampled."""
    groups = math.ceil(frames / rule.frames)
    share = 1 if rule.by_frame else groups * rule.frames
    columns, rows = _nearest(rule.cell, width, height, rule.video_least / share, rule.video_pixels / share)
    marks = rule.around * (1 if rule.marked_once else groups)
    return Seen(groups * columns * rows + marks, groups * columns * rows * rule.merge**2)


def _cells(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    cell = rule.cell
    if rule.kind == "area":
        return _nearest(cell, width, height, rule.least_pixels, rule.most_pixels)
    if rule.kind == "budget":
        scale = math.sqrt(rule.most_pixels / (width * height))
        most = rule.most_pixels // cell**2
        columns, rows = math.floor(width * scale / cell), math.floor(height * scale / cell)
        return min(max(1, columns), most), min(max(1, rows), most)
    scale = min(1.0, rule.longest / width, rule.longest / height) if rule.longest else 1.0
    if rule.most_pixels:
        covered = max(1, width // rule.patch) * max(1, height // rule.patch) * rule.patch**2
        scale = min(scale, math.sqrt(rule.most_pixels / covered))
    return math.ceil(max(1, int(width * scale)) / cell), math.ceil(max(1, int(height * scale)) / cell)


def _nearest(cell: int, width: int, height: int, least: float, most: float) -> tuple[int, int]:
    """(Columns, rows) of transformers' smart_resize."""
    columns, rows = round(width / cell), round(height / cell)
    if columns * rows * cell**2 > most:
        scale = math.sqrt(width * height / most)
        columns, rows = math.floor(width / scale / cell), math.floor(height / scale / cell)
    elif columns * rows * cell**2 < least:
        scale = math.sqrt(least / (width * height))
        columns, rows = math.ceil(width * scale / cell), math.ceil(height * scale / cell)
    return max(1, columns), max(1, rows)


def _tiled(rule: ImageRule, width: int, height: int) -> Seen:
    columns, rows = (1, 1) if rule.kind == "fixed" else _grid(rule, width, height)
    tiles = columns * rows + (columns * rows > 1)
    tokens = (rule.tile // rule.cell) ** 2
    marks = rule.each_tile * columns * rows if tiles > 1 else 0
    return Seen(tiles * tokens + marks + rule.around, tiles * (rule.tile // rule.patch) ** 2)


def _grid(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of tiles."""
    most, tile = rule.most_tiles, rule.tile
    grids = [(x, y) for x in range(1, most + 1) for y in range(1, most + 1) if x * y <= most]
    if rule.kind in ("canvas", "crossed"):
        scales = {grid: min(grid[0] * tile / width, grid[1] * tile / height) for grid in grids}
        enough = [scale for scale in scales.values() if scale >= 1]
        chosen = min(enough) if enough else max(scales.values())
        return min((grid for grid in grids if scales[grid] == chosen), key=lambda grid: grid[0] * grid[1])
    best, off = (1, 1), math.inf
    for grid in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        gap = abs(width / height - grid[0] / grid[1])
        if gap < off or (gap == off and width * height > 0.5 * tile**2 * grid[0] * grid[1]):
            best, off = grid, gap
    return best


def patches_read(rule: ImageRule, tokens: float, images: int, width: int, height: int) -> float:
    """Patches that the tower reads of images and frames that are so many tokens of the text."""
    if rule.kind == "crossed":
        return float(images * image(rule, width, height).patches)
    return tokens * rule.merge**2


def is_stretched(width: int, height: int) -> bool:
    """Whether no processor takes an image of that shape."""
    return max(width, height) > _MOST_STRETCHED * min(width, height)


def transformer_parameters(tower: VisionTower) -> int:
    """Weights of the matrices of its layers, which every patch goes through."""
    return tower.layers * (4 * tower.hidden**2 + (3 if tower.gated else 2) * tower.hidden * tower.width)


def tower_matmul(tower: VisionTower, patches: float, images: int) -> tuple[float, float]:
    """(Columns of one matrix of `hidden` rows with the weights of a layer, FLOP of a layer over those of this matrix).

    The rest is attention, of every patch of an image to all of it: 4 FLOP an element and pair (Kaplan et al. 2020,
    table 1, doubled for attention both ways).
    """
    weights = transformer_parameters(tower) / tower.layers
    pairs = patches / max(1, images)
    return weights / tower.hidden, 1.0 + 4.0 * tower.hidden * pairs / (2.0 * weights)


@dataclass(frozen=True)
class TowerCount:
    """How the weights of a kind of tower are counted: `frames` that one patch spans, learned `positions`, which parts
    have a bias, and the part that joins it (`merger`: two matrices over a cell of patches, of which `deepstack` more
    copies stand at inner layers; `mistral`: a merging matrix and two; `one`: a single matrix after a pooling)."""

    frames: int = 1
    positions: int = 0
    patch_bias: bool = False
    biased: bool = True
    centred_norms: bool = True
    joint: Literal["merger", "mistral", "one"] = "merger"
    deepstack: int = 0


def count_parameters(tower: VisionTower, count: TowerCount, text_hidden: int) -> int:
    """Weights of a tower with what joins it to a language model of that width (transformers: Qwen2-VL, Qwen2.5-VL,
    Qwen3-VL, Qwen3.5, Mistral3, Gemma3 and their vision models)."""
    hidden, merge, patch = tower.hidden, tower.rule.merge**2, tower.rule.patch
    norm = (1 + count.centred_norms) * hidden
    bias = int(count.biased)
    first = 3 * count.frames * patch**2 * hidden + count.patch_bias * hidden + count.positions * hidden
    matrices = transformer_parameters(tower)
    biases = bias * tower.layers * (_BIASES_OF_WIDTH * hidden + (2 if tower.gated else 1) * tower.width)
    body = first + matrices + biases + 2 * tower.layers * norm
    wide = merge * hidden
    pair = wide**2 + wide + wide * text_hidden + text_hidden
    if count.joint == "merger":
        return body + norm + pair + count.deepstack * ((1 + count.centred_norms) * wide + pair)
    if count.joint == "mistral":
        return body + 2 * hidden + wide * hidden + hidden * text_hidden + text_hidden**2
    return body + norm + hidden + hidden * text_hidden
