"""The colours of parts and curves, the same in the app's pane and in plots; told apart on dark ground and on light."""

PALETTE = (
    "#4c8dff",
    "#35b5a2",
    "#b07cff",
    "#f0a33a",
    "#e8618c",
    "#8fbf4d",
    "#5cc8e8",
    "#c9b458",
    "#a08d7d",
    "#8791a3",
)


def rgb(place: int) -> tuple[int, int, int]:
    """Red, green and blue of the colour at a place; the palette begins again where it ends."""
    text = PALETTE[place % len(PALETTE)]
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
