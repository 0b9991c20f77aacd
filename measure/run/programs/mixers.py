"""What mixes the tokens of a layer, for train.py beside it: attention of all kinds, Mamba, linear attention.

Every matrix is one of the plan's own table of the model, by its name. States run in chunks of plain PyTorch, without
the kernels that a framework would have for them.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

_CHUNK = 32


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), 1e-5)


class Bank(nn.Module):
    """Matrices side by side, each for a slice of its own: (..., copies, inputs) to (..., copies, outputs)."""

    def __init__(self, row):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(row["copies"], row["inputs"], row["outputs"]))

    def forward(self, x):
        return torch.einsum("...gi,gio->...go", x, self.weight.to(x.dtype))


class Matrices(nn.Module):
    """Has the matrices of a table as modules of their names."""

    def __init__(self, rows):
        super().__init__()
        for row in rows:
            plain = row["copies"] == 1
            made = nn.Linear(row["inputs"], row["outputs"], bias=row["bias"]) if plain else Bank(row)
            setattr(self, row["name"], made)

    def made(self, name, x):
        """The named projection of x, None where the layer has none."""
        return getattr(self, name)(x) if hasattr(self, name) else None


def rotary(length, width, device):
    frequencies = 1.0 / (10_000.0 ** (torch.arange(0, width, 2, device=device).float() / width))
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    return angles.cos(), angles.sin()


def turned(x, tables):
    """Pairs of each head's halves turned by their place; x is (batch, heads, length, width)."""
    cos, sin = (table.to(x.dtype) for table in tables)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def heads_of(x, width):
    """(batch, length, heads x width) as (batch, heads, length, width)."""
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


def band(length, window, device):
    """The last `window` tokens of each."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril().triu(1 - window)


def attended(q, k, v, window=None, mask=None):
    """(batch, length, heads x width) of causal attention, or of what `mask` leaves."""
    if q.shape[1] != k.shape[1] and q.device.type != "cuda":
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
    if mask is None and window and window < q.shape[2]:
        mask = band(q.shape[2], window, q.device)
    grouped = q.shape[1] != k.shape[1]
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=grouped)
    return out.transpose(1, 2).flatten(2)


def gated(out, gate, width):
    """The output by a gate of each of its elements, or of each head."""
    if gate is None:
        return out
    gate = gate.sigmoid()
    return out * (gate if gate.shape == out.shape else gate.repeat_interleave(width, dim=-1))


class Attention(Matrices):
    """Heads over keys and values of their own, or over those that an earlier layer lends."""

    def __init__(self, hidden, block, rows):
        super().__init__(rows)
        self.width, self.values, self.window = block["head_dim"], block["v_head_dim"], block["window"]
        self.turns, self.queries = self.width, block["heads"] * self.width
        self.borrows = block["borrows_cache"]
        normed = (2 - self.borrows) * bool(block["qk_norm"])
        self.norms = nn.ModuleList(RMSNorm(self.width) for _ in range(normed))
        if hasattr(self, "q_a_proj"):
            self.q_norm = RMSNorm(self.q_a_proj.out_features)

    def forward(self, x, tables, lent):
        q = self.q_proj(x) if hasattr(self, "q_proj") else self.q_b_proj(self.q_norm(self.q_a_proj(x)))
        # Its split rank has a part of the queries, and then there is no gate.
        twice = q.shape[-1] == 2 * self.queries
        q, gate = q.chunk(2, dim=-1) if twice else (q, self.made("g_proj", x))
        q, k, v = heads_of(q, self.width), *(lent if self.borrows else self.keys(x))
        if hasattr(self, "conv_qk_grouped"):
            q, k = self.convolved(q, k)
        if len(self.norms):
            q, k = self.norms[0](q), k if self.borrows else self.norms[1](k)
        q, k = turned(q, tables[self.width]), k if self.borrows else turned(k, tables[self.width])
        out = gated(attended(q, k, v, self.window), gate, self.values)
        if hasattr(self, "r_proj"):
            # Its matmul alone: what is learned of distances is a bias of the scores that no kernel of PyTorch has.
            out = out * self.r_proj(x).mean(-1, keepdim=True).sigmoid()
        return self.o_proj(out), (k, v)

    def keys(self, x):
        k, v = heads_of(self.k_proj(x), self.width), self.made("v_proj", x)
        return k, k if v is None else heads_of(v, self.values)

    def convolved(self, q, k):
        """Queries and keys, each head with those of the tokens before (compressed convolutional attention)."""
        both = torch.cat((q, k), dim=1).transpose(1, 2)
        reach = self.conv_qk_grouped.weight.shape[1] // self.width
        before = [F.pad(both, (0, 0, 0, 0, back, 0))[:, : both.shape[1]] for back in range(reach)]
        mixed = self.conv_qk_grouped(torch.cat(before, dim=-1)).transpose(1, 2)
        return mixed.split((q.shape[1], k.shape[1]), dim=1)


class Latent(Matrices):
    """Keys and values from one narrow latent (DeepSeek-V2), the keys that an indexer chooses (V3.2) alone."""

    def __init__(self, hidden, block, rows):
        super().__init__(rows)
        self.heads, self.values, self.turns = block["heads"], block["v_head_dim"], block["rope_head_dim"]
        self.plain, self.rank, self.window = block["head_dim"] - self.turns, block["kv_lora_rank"], block["window"]
        self.chosen, self.index = block["chosen_keys"], block["index_dim"]
        self.kv_norm = RMSNorm(self.rank)
        if hasattr(self, "q_a_proj"):
            self.q_norm = RMSNorm(self.q_a_proj.out_features)

    def forward(self, x, tables, lent):
        latent = self.q_norm(self.q_a_proj(x)) if hasattr(self, "q_a_proj") else x
        q, gate = self.queries(latent, x)
        kv, turning = self.kv_a_proj_with_mqa(x).split((self.rank, self.turns), dim=-1)
        k, v = heads_of(self.kv_b_proj(self.kv_norm(kv)), self.plain + self.values).split(
            (self.plain, self.values), dim=-1
        )
        if self.turns:
            plain, turns = q.split((self.plain, self.turns), dim=-1)
            q = torch.cat((plain, turned(turns, tables[self.turns])), dim=-1)
            key = turned(turning.unsqueeze(1), tables[self.turns]).expand(-1, self.heads, -1, -1)
            k = torch.cat((k, key), dim=-1)
        mask, weight = self.choice(latent, x) if hasattr(self, "indexer_wk") else (None, None)
        out = attended(q, k, v, self.window, mask)
        out = out if weight is None else out * weight
        return self.o_proj(gated(out, gate, self.values)), None

    def queries(self, latent, x):
        if not hasattr(self, "q_a_proj"):
            return heads_of(self.q_proj(x), self.plain + self.turns), self.made("g_proj", x)
        if self.q_b_proj.in_features == latent.shape[-1]:
            return heads_of(self.q_b_proj(latent), self.plain + self.turns), self.made("g_proj", x)
        both = self.q_b_proj(torch.cat((latent, latent), dim=-1))
        q, gate = both.split((self.heads * (self.plain + self.turns), self.heads * self.values), dim=-1)
        return heads_of(q, self.plain + self.turns), gate

    def choice(self, latent, x):
        """(Which keys each token attends to, a weight of its output by which what chooses is trained)."""
        queries = heads_of(self.indexer_wq_b(latent), self.index)
        scores = index_scores(queries, self.indexer_wk(x), self.indexer_weights_proj(x))
        causal = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).tril()
        return chosen(scores, causal, self.chosen), scores.mean(-1, keepdim=True).sigmoid()


def index_scores(queries, keys, weights):
    """(batch, length, entries): the weighed sum over heads of what is positive of their products, head by head."""
    total = torch.zeros((), device=keys.device)
    for head in range(queries.shape[1]):
        total = total + checkpoint(
            lambda q, k, w: F.relu(q @ k.transpose(-1, -2)) * w, queries[:, head], keys, weights[..., head, None],
            use_reentrant=False,
        )  # fmt: skip
    return total


def chosen(scores, visible, most):
    """The best `most` of what is visible, as a mask (batch, 1, length, entries)."""
    scores = scores.detach().masked_fill(~visible, float("-inf"))
    if not most or most >= scores.shape[-1]:
        return visible.expand_as(scores).unsqueeze(1)
    best = torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, scores.topk(most, dim=-1).indices, True)
    return (best & visible).unsqueeze(1)


class Compressed(Matrices):
    """DeepSeek-V4's: one key-value head, an entry for every few tokens, and the last tokens themselves."""

    def __init__(self, hidden, block, rows):
        super().__init__(rows)
        self.width, self.every, self.turns = block["head_dim"], block["cache_every"], 0
        self.window = block["local_window"] or block["window"]
        self.chosen, self.index = block["chosen_keys"], block["index_dim"]
        self.q_norm, self.kv_norm = RMSNorm(self.q_a_proj.out_features), RMSNorm(self.width)

    def forward(self, x, tables, lent):
        latent = self.q_norm(self.q_a_proj(x))
        q, own = heads_of(self.q_b_proj(latent), self.width), self.kv_norm(self.kv_proj(x))
        near = band(x.shape[1], self.window or x.shape[1], x.device)
        mask, weight, keys = near.expand(x.shape[0], 1, -1, -1), None, own
        if hasattr(self, "compressor"):
            entries = self.compressed(self.compressor(x), self.width)
            far, weight = self.choice(latent, x, entries.shape[1])
            mask, keys = torch.cat((far, mask), dim=-1), torch.cat((entries, own), dim=1)
        keys = keys.unsqueeze(1)
        out = attended(q, keys, keys, mask=mask)
        out = out if weight is None else out * weight
        groups = self.o_a_proj.weight.shape[0]
        return self.o_b_proj(self.o_a_proj(out.unflatten(-1, (groups, -1))).flatten(-2)), None

    def compressed(self, made, width):
        """An entry of `width` for every few tokens: their values by a softmax of their gates."""
        made = F.pad(made, (0, 0, 0, -made.shape[1] % self.every)).unflatten(1, (-1, self.every))
        values, gates = made.chunk(2, dim=-1)
        entries = (values * gates.softmax(dim=2)).sum(dim=2)
        if entries.shape[-1] == width:
            return entries
        # Windows overlap: half of an entry is of the tokens before.
        return entries[..., :width] + F.pad(entries[..., width:], (0, 0, 1, 0))[:, :-1]

    def choice(self, latent, x, entries):
        ends = torch.arange(1, entries + 1, device=x.device) * self.every
        visible = ends <= torch.arange(1, x.shape[1] + 1, device=x.device).unsqueeze(1)
        if not hasattr(self, "indexer_compressor"):
            return visible.expand(x.shape[0], 1, -1, -1), None
        keys = self.compressed(self.indexer_compressor(x), self.index)
        queries = heads_of(self.indexer_wq_b(latent), self.index)
        scores = index_scores(queries, keys, self.indexer_weights_proj(x))
        return chosen(scores, visible, self.chosen), scores.mean(-1, keepdim=True).sigmoid()


def scanned(q, k, v, decay, strength=None):
    """Outputs q S of a state S that fades by exp(decay) at each token and takes k v in: (batch, heads, length, width).

    With `strength` (batch, heads, length) what the state has for the key already is taken from v first (the delta rule:
    arXiv 2412.06464, section 3.3). A chunk at a time, each computed again in the backward pass, so that only the states
    between them are kept. In 32 bits.
    """
    length, kind = q.shape[2], q.device.type
    with torch.autocast(kind, enabled=False):
        parts = [part.float() for part in (q, k, v, decay)] + (
            [] if strength is None else [strength[..., None].float()]
        )
        parts = [F.pad(part, (0, 0, 0, -length % _CHUNK)).split(_CHUNK, dim=2) for part in parts]
        state = torch.zeros(*q.shape[:2], k.shape[-1], v.shape[-1], device=q.device)
        outs = []
        for piece in zip(*parts, strict=True):
            out, state = checkpoint(stepped, state, *piece, use_reentrant=False)
            outs.append(out)
    return torch.cat(outs, dim=2)[:, :, :length].to(v.dtype)


def stepped(state, q, k, v, decay, strength=None):
    """(The chunk's outputs, the state behind it)."""
    total = decay.cumsum(dim=2)
    seen, ahead = q * total.exp(), (k * (-total).exp()).transpose(-1, -2)
    if strength is not None:
        faded = strength * k * total.exp()
        within = (faded @ ahead).tril(-1) + torch.eye(q.shape[2], device=q.device)
        v = torch.linalg.solve_triangular(within, strength * v - faded @ state, upper=False, unitriangular=True)
    out = seen @ state + (seen @ ahead).tril() @ v
    rest = total[:, :, -1:]
    return out, rest.exp().transpose(-1, -2) * state + (k * (rest - total).exp()).transpose(-1, -2) @ v


class Convolution(nn.Conv1d):
    """Of each channel with those of the tokens before."""

    def __init__(self, channels, kernel):
        super().__init__(channels, channels, kernel, groups=channels, padding=kernel - 1)

    def forward(self, x):
        return super().forward(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)


class Mamba1(Matrices):
    """Selective state spaces (arXiv 2312.00752): each channel has a state, and a step of its own."""

    turns = 0

    def __init__(self, hidden, block, rows):
        super().__init__(rows)
        self.inner, self.states = block["ssm_inner"], block["state_size"]
        self.conv = Convolution(self.inner, block["conv_kernel"])
        self.a_log, self.d = nn.Parameter(torch.empty(self.inner, self.states)), nn.Parameter(torch.empty(self.inner))

    def forward(self, x, tables, lent):
        x, z = self.in_proj(x).chunk(2, dim=-1)
        x = F.silu(self.conv(x))
        step, b, c = self.x_proj(x).split((self.dt_proj.in_features, self.states, self.states), dim=-1)
        step = F.softplus(self.dt_proj(step))
        # A channel is a head with values of width 1.
        decay = step.transpose(1, 2).unsqueeze(-1) * -self.a_log.exp()[None, :, None]
        b, c = (part.unsqueeze(1).expand(-1, self.inner, -1, -1) for part in (b, c))
        out = scanned(c, b, (step * x).transpose(1, 2).unsqueeze(-1), decay).squeeze(-1).transpose(1, 2)
        return self.out_proj((out + self.d * x).to(z.dtype) * F.silu(z)), None


class Mamba2(Matrices):
    """State space duality (arXiv 2405.21060): a head has one step, groups of heads share what is read and written."""

    turns = 0

    def __init__(self, hidden, block, rows):
        super().__init__(rows)
        self.inner, self.states, self.heads = block["ssm_inner"], block["state_size"], block["ssm_heads"]
        self.convolved = self.in_proj.out_features - self.inner - self.heads
        self.conv, self.norm = Convolution(self.convolved, block["conv_kernel"]), RMSNorm(self.inner)
        self.a_log, self.d, self.dt_bias = (nn.Parameter(torch.empty(self.heads)) for _ in range(3))

    def forward(self, x, tables, lent):
        z, mixed, step = self.in_proj(x).split((self.inner, self.convolved, self.heads), dim=-1)
        read = (self.convolved - self.inner) // 2
        x, b, c = F.silu(self.conv(mixed)).split((self.inner, read, read), dim=-1)
        step = F.softplus(step + self.dt_bias).transpose(1, 2)
        times = self.heads * self.states // read
        b, c = (heads_of(part, self.states).repeat_interleave(times, dim=1) for part in (b, c))
        x = heads_of(x, self.inner // self.heads)
        decay = (step * -self.a_log.exp()[:, None]).unsqueeze(-1)
        out = scanned(c, b, x * step.unsqueeze(-1), decay) + self.d[:, None, None] * x
        return self.out_proj(self.norm(out.transpose(1, 2).flatten(2).to(z.dtype) * F.silu(z))), None


class Delta(Matrices):
    """The delta rule with decay: of a head (Gated DeltaNet) or of each of its channels (Kimi Delta Attention)."""

    turns = 0

    def __init__(self, hidden, block, rows):
        super().__init__(rows)
        self.width, self.inner, kernel = block["state_size"], block["ssm_inner"], block["conv_kernel"]
        self.joint = hasattr(self, "in_proj_qkv")
        self.heads = self.in_proj_ba.out_features // 2 if self.joint else self.b_proj.out_features
        self.values = self.inner // self.heads
        channels = self.in_proj_qkv.out_features if self.joint else 2 * self.heads * self.width + self.inner
        self.conv, self.norm = Convolution(channels, kernel), RMSNorm(self.values)
        self.a_log, self.dt_bias = nn.Parameter(torch.empty(self.heads)), nn.Parameter(torch.empty(self.heads))

    def forward(self, x, tables, lent):
        joint = self.in_proj_qkv(x) if self.joint else torch.cat((self.q_proj(x), self.k_proj(x), self.v_proj(x)), -1)
        mixed = F.silu(self.conv(joint))
        read = (mixed.shape[-1] - self.inner) // 2
        q, k, v = mixed.split((read, read, self.inner), dim=-1)
        q, k = (F.normalize(heads_of(part, self.width), dim=-1) for part in (q, k))
        times = self.heads // q.shape[1]
        q, k, v = q.repeat_interleave(times, dim=1), k.repeat_interleave(times, dim=1), heads_of(v, self.values)
        strength, decay, gate = self.gates(x)
        rate = -self.a_log.exp()[:, None, None]
        decay = rate * F.softplus(decay + self.dt_bias[:, None, None])
        out = self.norm(scanned(q, k, v, decay, strength.sigmoid())).transpose(1, 2).flatten(2)
        return self.outward(out.to(x.dtype) * gate.sigmoid()), None

    def gates(self, x):
        """(Strength of each head, its decay or that of its channels, gate of the output)."""
        if self.joint:
            strength, decay = self.in_proj_ba(x).transpose(1, 2).chunk(2, dim=1)
            return strength, decay.unsqueeze(-1), self.in_proj_z(x)
        decay, gate = (
            getattr(self, f"{name}_b_proj")(getattr(self, f"{name}_a_proj")(x))
            if hasattr(self, f"{name}_a_proj")
            else getattr(self, f"{name}_proj")(x)
            for name in ("f", "g")
        )
        return self.b_proj(x).transpose(1, 2), heads_of(decay, self.width), gate

    def outward(self, out):
        return self.out_proj(out) if self.joint else self.o_proj(out)


class ShortConvolution(Matrices):
    """LFM2's: a convolution between two gates."""

    turns = 0

    def __init__(self, hidden, block, rows):
        super().__init__(rows)
        self.conv = Convolution(block["ssm_inner"], block["conv_kernel"])

    def forward(self, x, tables, lent):
        before, behind, x = self.in_proj(x).chunk(3, dim=-1)
        return self.out_proj(behind * self.conv(before * x)), None


class ParallelStates(nn.Module):
    """Attention and a state space next to each other (Falcon-H1)."""

    def __init__(self, hidden, block, rows):
        super().__init__()
        self.attention = Attention(hidden, block, [row for row in rows if row["role"] == "attention"])
        self.states = Mamba2(hidden, block, [row for row in rows if row["role"] == "ssm"])
        self.turns = self.attention.turns

    def forward(self, x, tables, lent):
        out, kept = self.attention(x, tables, lent)
        return out + self.states(x, tables, lent)[0], kept


def mixer_of(hidden, block):
    """The mixer of a layer from its matrices, None where it has none."""
    rows = [row for row in block["matrices"] if row["role"] in ("attention", "ssm")]
    names = {row["name"] for row in rows}
    if not rows:
        return None
    kinds = {"mamba1": Mamba1, "mamba2": Mamba2, "mla": Latent, "linear_attention": Delta, "attention": Attention}
    kind = kinds[block["mixer"]]
    if kind is Latent and "kv_a_proj_with_mqa" not in names:
        kind = Compressed
    elif kind is Delta and names == {"in_proj", "out_proj"}:
        kind = ShortConvolution
    elif kind is Attention and any(row["role"] == "ssm" for row in rows):
        kind = ParallelStates
    return kind(hidden, block, rows)
