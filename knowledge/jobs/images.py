"""Tokens of the images and videos of a plan, by the rule of its model."""

from __future__ import annotations

from typing import Any

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from estimator.model.vision import images, is_stretched, video
from estimator.plan.assumptions import Assumption
from estimator.plan.schema import Inference, Training, image_sides


def seen(workload: Training | Inference, architecture: Architecture) -> tuple[dict[str, Any], list[Assumption]]:
    """(Changes to the workload, assumptions made): none where it has neither images nor video.

    Raises PlanError where the model sees none, or its rule is not known and no tokens are given.
    """
    wanted = "images" if workload.images else "video_frames"
    if not (workload.images or workload.video_frames):
        if workload.visual_tokens:
            raise PlanError("workload.visual_tokens", "there are no images or frames that they could be of", ["images"])
        return {}, []
    if not architecture.multimodal and architecture.vision is None:
        raise PlanError(f"workload.{wanted}", f"{architecture.id} reads text alone", ["0"])
    if workload.visual_tokens is not None:
        return {}, []
    tower = architecture.vision
    if tower is None or (workload.video_frames and not tower.rule.sees_video):
        what = "videos" if tower else "images"
        problem = f"how many tokens {what} are for {architecture.id} is not known: say workload.visual_tokens"
        raise PlanError(f"workload.{'video_frames' if tower else wanted}", problem)
    width, height = image_sides(workload.image_size)
    if is_stretched(width, height):
        raise PlanError("workload.image_size", f"{workload.image_size} is too long and narrow to be read", ["768x768"])
    tokens = images(tower.rule, workload.images, width, height).tokens
    each = f"{tokens // max(1, workload.images):,} tokens at {workload.image_size}"
    parts = [f"{workload.images} of {each}"] if workload.images else []
    if workload.video_frames:
        clip = video(tower.rule, workload.video_frames, width, height)
        tokens += clip.tokens
        parts.append(f"{clip.tokens:,} tokens for {workload.video_frames} frames")
    assumed = [Assumption("workload.visual_tokens", tokens, f"{' and '.join(parts)}, by the model's image processor")]
    if "image_size" not in workload.model_fields_set:
        assumed.append(Assumption("workload.image_size", workload.image_size, "a common size of images"))
    if isinstance(workload, Training) and "vision" not in workload.model_fields_set:
        assumed.append(Assumption("workload.vision", workload.vision, "LlamaFactory's default, freeze_vision_tower"))
    return {"visual_tokens": tokens}, assumed


_TEXT = 512
"""Tokens of text beside images that a sequence has room for where no length is given."""


def room(workload: Training, visual_tokens: int, usual: int) -> tuple[dict[str, Any], list[Assumption]]:
    """The length of sequences where their images need one above the usual; raises PlanError where a given length does
    not hold them."""
    if not visual_tokens:
        return {}, []
    if workload.seq_len is not None:
        if workload.seq_len <= visual_tokens:
            problem = f"{workload.seq_len} tokens have no room for the {visual_tokens:,} of the images"
            raise PlanError("workload.seq_len", problem, [f"above {visual_tokens}"])
        return {}, []
    if visual_tokens + _TEXT <= usual:
        return {}, []
    length = -(-(visual_tokens + _TEXT) // 1024) * 1024
    why = f"{visual_tokens:,} tokens of images, and text"
    return {"seq_len": length}, [Assumption("workload.seq_len", length, why)]
