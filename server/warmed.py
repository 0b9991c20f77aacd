"""What processes for calls begin with: the tools loaded and a first answer of each kind made, so that none of them has
to, whenever one is started in the place of one that was ended."""

from contextlib import suppress

from server.work import answered

for _name in ("describe_model", "check_fit", "estimate_inference"):
    with suppress(Exception):
        answered(_name, {"model": "gpt2"} | ({} if _name == "describe_model" else {"accelerator": "h100-sxm"}), None)
