"""Images of a vision-language model: how many tokens one is by the model's own rule, and the tower that reads it.

Rules are those of the image processors of transformers; lengths are in pixels, sizes are (width, height).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

_MOST_STRETCHED = 200.0
"""Sides of an image may differ by this factor at most (transformers, smart_resize)."""
_BIASES_OF_WIDTH = 5
"""Of a layer: queries, keys, values, output and the MLP's last (transformers, Qwen2VLVisionBlock)."""


_SHRUNK_FROM = 1.1
"""Share of a side above which cells are shrunk to the most that are allowed (LLaVA-OneVision, anyres_max_9)."""
_DIGITS = 7
"""Of a scaled side that is cut to whole cells (transformers, LlavaNextProcessor._get_unpadded_features)."""
_RESAMPLER_VECTORS, _RESAMPLER_MATRICES = 10, 5
"""Of the text's width in a resampler: three norms and attention's biases; attention's matrices and one behind it."""
_THIN_PIXELS, _OBLONG, _NARROW = 32, 1.5, 4
"""Of StepFun's ImagePatcher: a side below which narrow images are padded to squares, and ratios of sides from which
windows are as high as the image."""
_REST = 0.2
"""Of a window: a rest of an image above it has a window of its own (the same)."""


@dataclass(frozen=True)
class ImageRule:
    """How an image becomes tokens. One token stands for a square of `cell` pixels a side, `merge` x `merge` patches.

    `area`: both sides to the nearest multiple of a cell, with `least_pixels` to `most_pixels` (Qwen2-VL, smart_resize).
    `shrink`: within `longest` a side and `most_pixels`, never enlarged, then padded to whole cells (Pixtral; Kimi-VL).
    `budget`: as many cells as `most_pixels` hold, whatever the image's own size (Gemma 4).
    `padded`: to whole cells, shrunk as little as `most_pixels` need (GLM-5.3); `shape`: of the cells around its size,
    those of the nearest shape (Muse); `patched`: as of `padded`, by patches that are then made whole cells (Nemotron
    3 Omni).
    `canvas`: tiles of `tile` pixels a side, `most_tiles` at most, on the smallest canvas that does not shrink the image
    (Llama 4); `aspect`: on that of the nearest shape (InternVL); both with the whole image as one tile more.
    `fixed`: every image is scaled to `tile` pixels a side (Gemma 3).
    `crossed`: tiles as of `canvas`, without the whole image, whose patches and `each_tile` more vectors are keys of
    layers of cross-attention; in the text an image is one token (Llama 3.2 Vision).
    `widest`: the most columns whose rows keep the image's shape (Phi-3-vision); `cover`: as many tiles as it covers,
    the nearest shape above `most_tiles` (Phi-4-multimodal); `pinned`: `least_tiles` or more, `most_side` a side, that
    hold most of it and waste least (LLaVA-NeXT, LLaVA-OneVision). Cells of padding are left out but for `widest`,
    more than `most_cells` are shrunk to so many, and the whole image follows, with marks of rows where `marks_whole`.
    `views`: the whole image, `whole` pixels a side, and where it is above a tile also tiles of the nearest shape, both
    with marks of rows (DeepSeek-OCR); `split`: as of `area`, and above twice `most_pixels` tiles before it (LFM2-VL).
    `slices`: the whole image, and where it has more pixels than a tile also tiles of the nearest shape, each scaled to
    about a tile's pixels (MiniCPM-V).
    `windows`: the whole image, `whole` pixels a side, and windows of about a tile where it is larger or long (Step3).
    `queries`: a resampler makes so many tokens of each tile, whatever its cells.
    `around`, `each_row` and `each_tile` are marks: beside an image, at the end of each row of cells, and of each tile.
    A video is read in groups of `frames` frames, with `video_least` to `video_pixels` in all its frames together, or,
    where `by_frame`, in each, or each frame is a tile of `frame_tokens`, marks in (both 0: how videos are read is not
    known); `marked_once`: its marks are around the whole. `several`: tokens of each of several images, where only one
    alone is cut into tiles (0: each is read as one alone is). `spare`: sides of whole cells have a column more.
    """

    kind: Literal[
        "area",
        "shrink",
        "budget",
        "padded",
        "shape",
        "patched",
        "canvas",
        "aspect",
        "fixed",
        "crossed",
        "widest",
        "cover",
        "pinned",
        "views",
        "split",
        "slices",
        "windows",
    ]
    patch: int
    merge: int
    least_pixels: int = 0
    most_pixels: int = 0
    longest: int = 0
    tile: int = 0
    whole: int = 0
    most_tiles: int = 1
    least_tiles: int = 1
    most_side: int = 0
    most_cells: int = 0
    marks_whole: bool = False
    queries: int = 0
    several: int = 0
    around: int = 0
    each_row: int = 0
    each_tile: int = 0
    frames: int = 1
    video_least: int = 0
    video_pixels: int = 0
    frame_tokens: int = 0
    by_frame: bool = False
    marked_once: bool = False
    spare: bool = False

    @property
    def cell(self) -> int:
        return self.patch * self.merge

    @property
    def sees_video(self) -> bool:
        return self.video_pixels > 0 or self.frame_tokens > 0


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


def images(rule: ImageRule, count: int, width: int, height: int) -> Seen:
    """So many images of one size."""
    if rule.several and count > 1:
        return Seen(count * rule.several, count * (rule.tile // rule.patch) ** 2)
    single = image(rule, width, height)
    return Seen(count * single.tokens, count * single.patches, count * single.keys)


@lru_cache(maxsize=512)
def image(rule: ImageRule, width: int, height: int) -> Seen:
    """One image of that size, alone."""
    if rule.kind == "crossed":
        columns, rows = _grid(rule, width, height)
        tile = (rule.tile // rule.cell) ** 2
        return Seen(1, columns * rows * tile, columns * rows * (tile + rule.each_tile))
    if rule.kind in ("canvas", "aspect", "fixed"):
        return _tiled(rule, width, height)
    if rule.kind in ("widest", "cover", "pinned"):
        return _spread(rule, width, height)
    if rule.kind == "slices":
        return _sliced(rule, width, height)
    if rule.kind == "windows":
        return _windowed(rule, width, height)
    if rule.kind in ("views", "split"):
        return _beside_tiles(rule, width, height)
    columns, rows = _cells(rule, width, height)
    return Seen(columns * rows + rule.each_row * rows + rule.around, columns * rows * rule.merge**2)


def video(rule: ImageRule, frames: int, width: int, height: int) -> Seen:
    """Frames of one video, those that are sampled."""
    if rule.frame_tokens:
        return Seen(frames * rule.frame_tokens + rule.marked_once, frames * (rule.tile // rule.patch) ** 2)
    groups = math.ceil(frames / rule.frames)
    share = 1 if rule.by_frame else groups * rule.frames
    columns, rows = _nearest(rule.cell, width, height, rule.video_least / share, rule.video_pixels / share)
    marks = rule.around * (1 if rule.marked_once else groups)
    return Seen(groups * columns * rows + marks, groups * columns * rows * rule.merge**2)


def _cells(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    cell = rule.cell
    if rule.kind in ("area", "split"):
        return _nearest(cell, width, height, rule.least_pixels, rule.most_pixels)
    if rule.kind in ("padded", "shape", "patched"):
        return {"padded": _padded, "shape": _shaped, "patched": _patched}[rule.kind](rule, width, height)
    if rule.kind == "budget":
        scale = math.sqrt(rule.most_pixels / (width * height))
        most = rule.most_pixels // cell**2
        columns, rows = math.floor(width * scale / cell), math.floor(height * scale / cell)
        return min(max(1, columns), most), min(max(1, rows), most)
    scale = min(1.0, rule.longest / width, rule.longest / height) if rule.longest else 1.0
    if rule.most_pixels:
        covered = max(1, width // rule.patch) * max(1, height // rule.patch) * rule.patch**2
        scale = min(scale, math.sqrt(rule.most_pixels / covered))
    return math.ceil((max(1, int(width * scale)) + rule.spare) / cell), math.ceil(max(1, int(height * scale)) / cell)


def _padded(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of transformers' Glm5NextImageProcessor: the highest content whose whole cells are allowed."""
    cell, most = rule.cell, rule.most_pixels // rule.cell**2
    columns, rows = math.ceil(width / cell), math.ceil(height / cell)
    if columns * rows * cell**2 < rule.least_pixels:
        scale = math.sqrt(rule.least_pixels / (width * height))
        columns, rows = math.ceil(math.ceil(width * scale) / cell), math.ceil(math.ceil(height * scale) / cell)
    if columns * rows <= most:
        return columns, rows
    low, high, best = 1, height, (1, 1)
    while low <= high:
        middle = (low + high) // 2
        grid = math.ceil(max(1, width * middle // height) / cell), math.ceil(middle / cell)
        best, low, high = (grid, middle + 1, high) if math.prod(grid) <= most else (best, low, middle - 1)
    return best


def _shaped(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of transformers' MuseGlimmerImageProcessor."""
    most = rule.most_pixels // rule.cell**2
    across, down = width / rule.cell, height / rule.cell
    if across * down > most:
        down = math.sqrt(most / (width / height))
        across = down * width / height
    # Of equal shapes the processor takes what its set has first.
    around = set(product((math.floor(down), math.ceil(down)), (math.floor(across), math.ceil(across))))
    grids = [grid for grid in around if min(grid) >= 1 and math.prod(grid) <= most]
    if not grids:
        return max(1, round(across)), max(1, round(down))
    rows, columns = min(grids, key=lambda grid: abs(grid[0] / grid[1] - height / width))
    return columns, rows


def _patched(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of transformers' NemotronH_Omni_Reasoning_V3ImageProcessor."""
    least, most = (pixels // rule.patch**2 for pixels in (rule.least_pixels, rule.most_pixels))
    across, down = (round(side / rule.patch + 0.5) for side in (width, height))
    scale = min(math.sqrt(most / (across * down)), 1.0)
    across, down = math.floor(scale * across), math.floor(scale * down)
    if across * down < least:
        scale = math.sqrt(least / (across * down))
        across, down = math.ceil(scale * across), math.ceil(scale * down)
    rows = _whole(down, across, rule.merge, most)
    return _whole(across, rows * rule.merge, rule.merge, most), rows


def _whole(patches: int, others: int, merge: int, most: int) -> int:
    """Cells of a side of so many patches: more patches where the other side leaves room for them."""
    cells = math.ceil(patches / merge)
    return cells if cells * merge * others <= most else max(1, patches // merge)


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


def _spread(rule: ImageRule, width: int, height: int) -> Seen:
    """Tiles whose cells are read row by row, and the whole image."""
    columns, rows = {"widest": _widest, "cover": _cover, "pinned": _pinned}[rule.kind](rule, width, height)
    side = rule.tile // rule.cell
    across, down = columns * side, rows * side
    if rule.kind == "cover":
        scale = min(columns * rule.tile / width, rows * rule.tile / height)
        padded = columns * rule.tile - int(width * scale), rows * rule.tile - int(height * scale)
        across, down = (
            math.ceil((cells * rule.merge - pad // rule.patch) / rule.merge)
            for cells, pad in zip((across, down), padded, strict=True)
        )
    elif rule.kind == "pinned":
        if width / height > across / down:
            down -= (down - int(round(height * (across / width), _DIGITS))) // 2 * 2
        else:
            across -= (across - int(round(width * (down / height), _DIGITS))) // 2 * 2
        if rule.most_cells and (shrunk := math.sqrt(across * down / rule.most_cells)) > _SHRUNK_FROM:
            across, down = int(across // shrunk), int(down // shrunk)
    whole = side * (side + rule.each_row * rule.marks_whole)
    tokens = down * (across + rule.each_row) + whole + rule.around
    return Seen(tokens, (columns * rows + 1) * (rule.tile // rule.patch) ** 2)


def _beside_tiles(rule: ImageRule, width: int, height: int) -> Seen:
    """The whole image, and tiles of it where it is large."""
    side = rule.tile // rule.cell
    tile = (rule.tile // rule.patch) ** 2
    if rule.kind == "views":
        is_large = max(width, height) > rule.tile
        columns = rows = rule.whole // rule.cell
    else:
        is_large = math.prod(max(rule.patch, round(each / rule.cell) * rule.cell) for each in (width, height)) > (
            2 * rule.most_pixels
        )
        columns, rows = _cells(rule, width, height)
    tokens, patches = rows * (columns + rule.each_row) + rule.around, columns * rows * rule.merge**2
    if not is_large:
        return Seen(tokens, patches)
    across, down = _grid(rule, width, height)
    tiles = across * down
    tokens += down * side * (across * side + rule.each_row) + rule.each_tile * (tiles + rule.marks_whole)
    return Seen(tokens, patches + tiles * tile)


def _widest(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of Phi-3-vision's HD_transform, which lays tall images on their side."""
    ratio = max(width, height) / min(width, height)
    long = max(n for n in range(1, rule.most_tiles + 1) if n * math.ceil(n / ratio) <= rule.most_tiles)
    short = math.ceil(int(long * rule.tile / ratio) / rule.tile)
    return (long, short) if width >= height else (short, long)


def _cover(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    columns, rows = math.ceil(width / rule.tile), math.ceil(height / rule.tile)
    return (columns, rows) if columns * rows <= rule.most_tiles else _grid(rule, width, height)


def _pinned(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of transformers' select_best_resolution."""
    sides = range(1, rule.most_side + 1)
    grids = [(x, y) for y in sides for x in sides if rule.least_tiles <= x * y <= rule.most_tiles]

    def held(grid: tuple[int, int]) -> int:
        scale = min(grid[0] * rule.tile / width, grid[1] * rule.tile / height)
        return min(int(width * scale) * int(height * scale), width * height)

    return max(grids, key=lambda grid: (held(grid), held(grid) - grid[0] * grid[1] * rule.tile**2))


def _sliced(rule: ImageRule, width: int, height: int) -> Seen:
    """The whole image, and its slices (MiniCPM-V's image processors)."""
    columns, rows = _slices(rule, width, height)
    tiles = columns * rows if columns * rows > 1 else 0
    cells = math.prod(_resized(rule, width, height, enlarged=not tiles))
    tokens, patches = rule.queries or cells, cells
    if tiles:
        each = math.prod(_resized(rule, _divisible(width, columns), _divisible(height, rows), enlarged=True))
        tokens += tiles * ((rule.queries or each) + rule.each_tile) + rule.each_row * (rows - 1)
        patches += tiles * each
    return Seen(tokens + rule.around, patches * rule.merge**2)


def _divisible(pixels: int, parts: int) -> int:
    """Pixels of one of so many parts, once the whole can be divided by them."""
    return max(round(pixels / parts), 1)


def _resized(rule: ImageRule, width: int, height: int, *, enlarged: bool) -> tuple[int, int]:
    """(Columns, rows) of cells of an image that is scaled to about the pixels of a tile."""
    if enlarged or width * height > rule.tile**2:
        ratio = width / height
        height = int(rule.tile / math.sqrt(ratio))
        width = int(height * ratio)
    return max(round(width / rule.cell), 1), max(round(height / rule.cell), 1)


def _slices(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of slices, (1, 1) where the whole is enough: of about so many as it has tiles' pixels, those
    whose shape is nearest."""
    wanted = min(math.ceil(width * height / rule.tile**2), rule.most_tiles)
    if wanted <= 1:
        return 1, 1
    counts = [count for count in (wanted - 1, wanted, wanted + 1) if 1 < count <= rule.most_tiles]
    grids = [(x, count // x) for count in counts for x in range(1, count + 1) if count % x == 0]
    return min(grids, key=lambda grid: abs(math.log(width / height) - math.log(grid[0] / grid[1])))


def _windowed(rule: ImageRule, width: int, height: int) -> Seen:
    """The whole image, and its windows, with a mark between rows (StepFun's ImagePatcher)."""
    columns, rows = _windows(rule, width, height)
    tiles = columns * rows
    tokens = (rule.whole // rule.cell) ** 2 + tiles * ((rule.tile // rule.cell) ** 2 + rule.each_tile)
    patches = (rule.whole // rule.patch) ** 2 + tiles * (rule.tile // rule.patch) ** 2
    return Seen(tokens + rule.each_row * max(0, rows - 1) + rule.around, patches)


def _windows(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of windows, (0, 0) where the whole is enough."""
    if min(width, height) < _THIN_PIXELS and max(width, height) > _NARROW * min(width, height):
        width = height = max(width, height)
    if (longest := max(width, height)) > rule.longest:
        width, height = (int(side * (rule.longest / longest)) for side in (width, height))
    long, short = max(width, height), min(width, height)
    if long <= rule.whole:
        window = short if long / short > _OBLONG else 0
    else:
        window = min(short, rule.tile) if long / short > _NARROW else rule.tile
    if not window:
        return 0, 0
    columns, rows = (max(1, side // window + (side / window - side // window > _REST)) for side in (width, height))
    return columns, rows


def _grid(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    """(Columns, rows) of tiles."""
    most, tile = rule.most_tiles, rule.tile
    grids = [(x, y) for x in range(1, most + 1) for y in range(1, most + 1)]
    grids = [grid for grid in grids if rule.least_tiles <= math.prod(grid) <= most]
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
    have a bias, how many norms stand outside of its layers, and the part that joins it (`merger`: two matrices over a
    cell of patches, of which `deepstack` more copies stand at inner layers; `mistral`: a merging matrix and two; `one`:
    a single matrix after a pooling; `pair`: two, the first to the width of the text, and a learned `newline`;
    `queries`: a resampler, whose queries attend to the patches)."""

    frames: int = 1
    positions: int = 0
    patch_bias: bool = False
    biased: bool = True
    centred_norms: bool = True
    outer_norms: int = 0
    joint: Literal["merger", "mistral", "one", "pair", "queries"] = "merger"
    deepstack: int = 0
    newline: bool = False


def count_parameters(tower: VisionTower, count: TowerCount, text_hidden: int) -> int:
    """Weights of a tower with what joins it to a language model of that width (transformers: Qwen2-VL, Qwen2.5-VL,
    Qwen3-VL, Qwen3.5, Mistral3, Gemma3, Llava and their vision models; MiniCPM-V's resampler as vLLM has it)."""
    hidden, merge, patch = tower.hidden, tower.rule.merge**2, tower.rule.patch
    norm = (1 + count.centred_norms) * hidden
    bias = int(count.biased)
    first = 3 * count.frames * patch**2 * hidden + count.patch_bias * hidden + count.positions * hidden
    matrices = transformer_parameters(tower)
    biases = bias * tower.layers * (_BIASES_OF_WIDTH * hidden + (2 if tower.gated else 1) * tower.width)
    body = first + matrices + biases + (2 * tower.layers + count.outer_norms) * norm
    wide = merge * hidden
    pair = wide**2 + wide + wide * text_hidden + text_hidden
    if count.joint == "merger":
        return body + norm + pair + count.deepstack * ((1 + count.centred_norms) * wide + pair)
    if count.joint == "pair":
        return body + hidden * text_hidden + text_hidden**2 + (2 + count.newline) * text_hidden
    if count.joint == "queries":
        each = hidden + tower.rule.queries + _RESAMPLER_VECTORS + _RESAMPLER_MATRICES * text_hidden
        return body + each * text_hidden
    if count.joint == "mistral":
        return body + 2 * hidden + wide * hidden + hidden * text_hidden + text_hidden**2
    return body + norm + hidden + hidden * text_hidden
