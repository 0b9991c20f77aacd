"""The offline planner: a deterministic reader of the field's language, the same tools, answers from templates."""
