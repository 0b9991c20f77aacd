"""What a plan's images and frames are to its model, of training and of serving alike."""

from __future__ import annotations

from estimator.model.architecture import Architecture
from estimator.model.vision import images, video
from estimator.plan.schema import Inference, Training, image_sides


def patches(architecture: Architecture, workload: Training | Inference) -> float:
    """Patches of the images and frames of one sequence or request; of tokens that are not those of the model's rule,
    in their proportion."""
    tower = architecture.vision
    if tower is None or not workload.visual_tokens:
        return 0.0
    rule, sides = tower.rule, image_sides(workload.image_size)
    still = images(rule, workload.images, *sides)
    if rule.kind == "crossed":
        return float(still.patches)
    tokens, read = still.tokens, still.patches
    if workload.video_frames:
        if not rule.sees_video:
            return float(workload.visual_tokens * rule.merge**2)
        clip = video(rule, workload.video_frames, *sides)
        tokens, read = tokens + clip.tokens, read + clip.patches
    return read * workload.visual_tokens / tokens


def keys(architecture: Architecture, workload: Training | Inference) -> float:
    """Keys of the images of one sequence or request in layers of cross-attention."""
    tower = architecture.vision
    if tower is None or not workload.images:
        return 0.0
    return float(images(tower.rule, workload.images, *image_sides(workload.image_size)).keys)
