"""What a plan's images and frames are to its model, of training and of serving alike."""

from __future__ import annotations

from estimator.model.architecture import Architecture
from estimator.model.vision import image, patches_read
from estimator.plan.schema import Inference, Training, image_sides


def patches(architecture: Architecture, workload: Training | Inference) -> float:
    """Patches of the images and frames of one sequence or request."""
    tower = architecture.vision
    if tower is None or not workload.visual_tokens:
        return 0.0
    sides = image_sides(workload.image_size)
    return patches_read(tower.rule, workload.visual_tokens, workload.images, *sides)


def keys(architecture: Architecture, workload: Training | Inference) -> float:
    """Keys of the images of one sequence or request in layers of cross-attention."""
    tower = architecture.vision
    if tower is None or not workload.images:
        return 0.0
    return float(workload.images * image(tower.rule, *image_sides(workload.image_size)).keys)
