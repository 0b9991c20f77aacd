"""A callback of the transformers Trainer that profiles some steps of a run, for the scripts of programs that have no
profiler: with torch's, which writes a trace, or by telling nsys, which goes around the program, what to record."""

from __future__ import annotations

from launchers.launch.training import TrainingLaunch
from launchers.trial.profiling import FOLDER, tool_of

CALLBACK = "Profiled"
_CLASS = '''
class Profiled(TrainerCallback):
    """Profiles steps FIRST to LAST, counted from 1 of this start, on RANKS."""

    def on_train_begin(self, args, state, control, **kwargs):
        self.step, self.profiler = 0, None
        self.here = args.process_index in RANKS

    def on_step_begin(self, args, state, control, **kwargs):
        self.step += 1
        if self.here and self.step == FIRST:
            BEGIN

    def on_step_end(self, args, state, control, **kwargs):
        if self.here and self.step == LAST:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            END
'''
_TORCH = (
    "self.profiler = torch.profiler.profile(record_shapes=True)\n            self.profiler.start()",
    "self.profiler.stop()\n"
    '            os.makedirs("FOLDER", exist_ok=True)\n'
    '            self.profiler.export_chrome_trace(f"FOLDER/rank_{args.process_index}.json.gz")',
)
_NSYS = ("torch.cuda.profiler.start()", "torch.cuda.profiler.stop()")
IMPORTS = ("os", "torch")
"""What the callback needs imported, besides transformers' TrainerCallback."""


def callback(launch: TrainingLaunch) -> list[str]:
    """The class as lines of Python; none where the run is not profiled."""
    profile = launch.site.profiled
    if profile is None:
        return []
    begin, end = _NSYS if tool_of(launch) == "nsys" else _TORCH
    ranks = profile.ranks or (0,)
    text = _CLASS.replace("BEGIN", begin).replace("END", end).replace("FOLDER", f"{FOLDER}/{launch.slug}")
    text = text.replace("FIRST", str(profile.first)).replace("LAST", str(profile.last))
    return text.replace("RANKS", f"({', '.join(map(str, ranks))},)").strip("\n").split("\n")
