"""A decoder after the plan's own table of its matrices, for train.py beside it: feed-forward parts, adapters, layers.

Parameters that a model has and that none of this has a use for are there all the same: they have gradients and states
of the optimizer, as the plan counts them.
"""
# pyright: basic, reportMissingImports=false, reportOptionalCall=false

from __future__ import annotations

import torch
import torch.nn.functional as F
from mixers import Matrices, RMSNorm, mixer_of, rotary
from torch import nn
from torch.utils.checkpoint import checkpoint

_LOSS_PIECES = 8
# Of bitsandbytes' NF4 (arXiv 2305.14314, appendix E): the levels, the block of a scale, the block of the scales' own.
_NF4 = (
    -1.0, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1.0,
)  # fmt: skip
_BLOCK, _COARSE_BLOCK = 64, 256


class LoraLinear(nn.Module):
    """A frozen matrix with a trained update of low rank beside it."""

    def __init__(self, plain, rank, alpha):
        super().__init__()
        self.plain = plain
        self.down = nn.Linear(plain.in_features, rank, bias=False)
        self.up = nn.Linear(rank, plain.out_features, bias=False)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.scale = alpha / rank

    def forward(self, x):
        return self.plain(x) + self.up(self.down(x)) * self.scale


class Nf4Linear(nn.Module):
    """A frozen matrix in 4 bits: two weights a byte, a scale of 8 bits for 64 of them, one of 32 for 256 scales. It is
    unpacked before each use, and again in the backward pass."""

    def __init__(self, plain):
        super().__init__()
        self.in_features, self.out_features, self.bias = plain.in_features, plain.out_features, plain.bias
        count = self.in_features * self.out_features
        scales = -(-count // _BLOCK)
        self.packed = nn.Parameter(torch.empty(-(-count // 2), dtype=torch.uint8), requires_grad=False)
        self.scales = nn.Parameter(torch.empty(scales, dtype=torch.uint8), requires_grad=False)
        self.coarse = nn.Parameter(torch.empty(-(-scales // _COARSE_BLOCK)), requires_grad=False)

    def unpacked(self, dtype):
        level = torch.tensor(_NF4, dtype=dtype, device=self.packed.device)
        pairs = torch.stack((level.repeat_interleave(16), level.repeat(16)), dim=-1)
        coarse = self.coarse.repeat_interleave(_COARSE_BLOCK)[: self.scales.numel()]
        scales = (self.scales * coarse).to(dtype).repeat_interleave(_BLOCK)
        count = self.in_features * self.out_features
        weights = F.embedding(self.packed.int(), pairs).flatten()[:count] * scales[:count]
        return weights.view(self.out_features, self.in_features)

    def forward(self, x):
        return _Unpacked.apply(x, self) + (0.0 if self.bias is None else self.bias)


class _Unpacked(torch.autograd.Function):
    """The product by a matrix in 4 bits, of which nothing unpacked is kept."""

    @staticmethod
    def forward(ctx, x, matrix):
        ctx.matrix = matrix
        return F.linear(x, matrix.unpacked(x.dtype))

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.matrix.unpacked(gradient.dtype), None


class FeedForward(Matrices):
    def __init__(self, rows, prefix=""):
        super().__init__([{**row, "name": row["name"].removeprefix(prefix)} for row in rows])

    def forward(self, x):
        up = self.up_proj(x)
        gate = self.made("gate_proj", x)
        out = self.down_proj(F.gelu(up) if gate is None else F.silu(gate) * up)
        if hasattr(self, "per_layer_input_gate"):
            out = out + self.per_layer_projection(F.gelu(self.per_layer_input_gate(x)))
        return out


class Experts(Matrices):
    """Every token goes to top_k of the experts; each expert takes its tokens in one piece."""

    def __init__(self, block):
        rows = block["matrices"]
        single = [row for row in rows if row["role"] in ("router", "mlp") and not row["name"].startswith("vision_")]
        super().__init__([row for row in single if row["copies"] == 1])
        routed = {row["name"]: row for row in rows if row["role"] == "expert"}
        up = routed["up_proj"]
        self.count, self.top_k, self.gated = block["experts"], block["top_k"], "gate_proj" in routed
        self.up = nn.Parameter(torch.empty(self.count, up["inputs"], up["outputs"] * (1 + self.gated)))
        self.down = nn.Parameter(torch.empty(self.count, up["outputs"], up["inputs"]))
        shared = [row for row in rows if row["role"] == "shared_expert"]
        self.shared = FeedForward(shared, "shared_") if shared else None
        # A router of several layers has two of the same shape.
        self.routing = nn.ModuleList(
            nn.Linear(row["inputs"], row["outputs"])
            for row in single
            for _ in range(row["copies"] * (row["copies"] > 1))
        )

    def scores(self, tokens):
        if hasattr(self, "router"):
            return self.router(tokens)[:, : self.count]
        tokens = self.router_down_proj(tokens)
        for layer in self.routing:
            tokens = F.gelu(layer(tokens))
        return self.router_out_proj(tokens)[:, : self.count]

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        shares, chosen = self.scores(tokens).float().softmax(dim=-1).topk(self.top_k, dim=-1)
        shares = (shares / shares.sum(dim=-1, keepdim=True)).to(x.dtype)
        inward = self.latent_in_proj(tokens) if hasattr(self, "latent_in_proj") else tokens
        order = chosen.flatten().argsort()
        counts = chosen.flatten().bincount(minlength=self.count).tolist()
        rows = order // self.top_k
        ups, downs = self.up.to(x.dtype), self.down.to(x.dtype)
        pieces = []
        for expert, piece in enumerate(inward[rows].split(counts)):
            up = piece @ ups[expert]
            gate, up = up.chunk(2, dim=-1) if self.gated else (None, up)
            pieces.append((F.relu(up).square() if gate is None else F.silu(gate) * up) @ downs[expert])
        weighed = torch.cat(pieces) * shares.flatten()[order].unsqueeze(-1)
        out = torch.zeros_like(inward).index_add(0, rows, weighed.to(inward.dtype))
        out = (self.latent_out_proj(out) if hasattr(self, "latent_out_proj") else out).view_as(x)
        if self.shared is None:
            return out
        gate = self.made("shared_expert_gate", x)
        return out + self.shared(x) * (1.0 if gate is None else gate.sigmoid())


def rest(module, count):
    """A parameter of so many elements less those that the module has; None where it has them all."""
    missing = count - sum(row.numel() for row in module.parameters())
    return nn.Parameter(torch.empty(missing)) if missing > 0 else None


class Layer(nn.Module):
    """A mixer and a feed-forward part, one after the other or beside each other; either may be missing."""

    def __init__(self, hidden, block, parallel):
        super().__init__()
        self.parallel, self.crosses = parallel and block["norms"] > 0, block["crosses"]
        self.attention = mixer_of(hidden, block)
        dense = [row for row in block["matrices"] if row["role"] == "mlp"]
        self.feed = Experts(block) if block["experts"] else FeedForward(dense) if dense else None
        both = self.attention is not None and self.feed is not None
        self.attention_norm = None if self.attention is None else RMSNorm(hidden)
        self.feed_norm = None if self.feed is None or (both and block["norms"] < 2) else RMSNorm(hidden)
        self.after = nn.ModuleList([RMSNorm(hidden), RMSNorm(hidden)] if both and block["norms"] > 3 else [])
        self.others = rest(self, block["parameters"])

    def forward(self, x, tables, lent):
        if self.crosses:
            # It reads images, and there are none: as with text alone.
            return x, None
        mixed, kept, came = None, None, x
        if self.attention is not None:
            mixed, kept = self.attention(self.attention_norm(x), tables, lent)
            x = x + (self.after[0](mixed) if len(self.after) else mixed)
        if self.feed is not None:
            read = came if self.parallel else x
            out = self.feed((self.feed_norm or self.attention_norm)(read))
            x = x + (self.after[1](out) if len(self.after) else out)
        return (x if self.others is None else x + 0.0 * self.others.sum().to(x.dtype)), kept


class Decoder(nn.Module):
    """`repeated` layers are computed again in the backward pass; with `to_host` what they keep waits in host memory."""

    def __init__(self, model, repeated, in_pieces, to_host):
        super().__init__()
        hidden = model["hidden"]
        self.embedding = nn.Embedding(model["vocab"], hidden)
        self.layers = nn.ModuleList(
            [Layer(hidden, model["blocks"][kind], model["parallel"]) for kind in model["pattern"]]
        )
        self.norm = RMSNorm(hidden)
        self.head = nn.Linear(hidden, model["vocab"], bias=model["head_bias"])
        if model["tied"]:
            self.head.weight = self.embedding.weight
        self.others = rest(self, model["parameters"])
        self.repeated, self.in_pieces, self.to_host = repeated, in_pieces, to_host
        self.widths = sorted({layer.attention.turns for layer in self.layers if layer.attention is not None} - {0})

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        tables = {width: rotary(tokens.shape[1], width, tokens.device) for width in self.widths}
        if self.to_host:
            with torch.autograd.graph.save_on_cpu(pin_memory=x.device.type == "cuda"):
                x = self.norm(self.passed(x, tables))
        else:
            x = self.norm(self.passed(x, tables))
        x = x if self.others is None else x + 0.0 * self.others.sum().to(x.dtype)
        if not self.in_pieces:
            return self.loss(x, labels)
        pieces = zip(x.chunk(_LOSS_PIECES, dim=1), labels.chunk(_LOSS_PIECES, dim=1), strict=True)
        losses = [
            checkpoint(self.loss, piece, wanted, use_reentrant=False) * wanted.numel() for piece, wanted in pieces
        ]
        return torch.stack(losses).sum() / labels.numel()

    def passed(self, x, tables):
        lent = {}
        for number, layer in enumerate(self.layers):
            width = getattr(layer.attention, "width", None)
            if number < self.repeated:
                x, kept = checkpoint(layer, x, tables, lent.get(width), use_reentrant=False)
            else:
                x, kept = layer(x, tables, lent.get(width))
            if kept is not None:
                lent[width] = kept
        return x

    def loss(self, x, labels):
        return F.cross_entropy(self.head(x).flatten(0, 1).float(), labels.flatten())


def adapted(model, pattern, blocks, lora):
    """The model with adapters on the matrices that the plan has them on, those of 4 bits in them, and everything else
    frozen."""
    model.requires_grad_(False)
    for kind, layer in zip(pattern, model.layers, strict=True):
        marks = {row["name"]: row for row in blocks[kind]["matrices"] if row["adapted"] or row["packed"]}
        for path, part in list(layer.named_modules()):
            if not isinstance(part, nn.Linear):
                continue
            owner, _, name = path.rpartition(".")
            row = marks.get(f"shared_{name}" if owner.endswith("shared") else name)
            if row is None:
                continue
            made = Nf4Linear(part) if row["packed"] else part
            setattr(
                layer.get_submodule(owner),
                name,
                LoraLinear(made, lora["rank"], lora["alpha"]) if row["adapted"] else made,
            )
    return model


def local(tensor):
    """This rank's part of it."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def begun(model):
    """Random weights where a model was made without memory."""
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if parameter.dtype == torch.uint8:
                local(parameter).random_(0, 256)
            elif name.endswith("coarse"):
                parameter.fill_(2e-4)
            elif "norm" in name.rpartition(".")[0].rpartition(".")[2] or ".norms." in name or ".after." in name:
                parameter.fill_(1.0)
            elif name.endswith((".up.weight", "bias")):
                parameter.zero_()
            else:
                parameter.normal_(0.0, 0.02)
