"""The closed forms of attlas in PyTorch, as strong peers: algebra that anyone may copy.

Each function computes what a program of attlas computes, by the same formulas, with PyTorch's
batched products and no loop over models, seeds or samples. What is left between the two sides is
the work of the library: memory, order of products, one compiled program in place of many calls.
"""

import numpy as np
import torch

HEADS_OF_A_BLOCK = 16


def tangent_gram(U: torch.Tensor, W: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """Neural tangent Gram of the multi-head model by blocks of heads, (n, n).

    The gradients are A_h X for U_h and X' G_h X for W_h, G = A * (X U' - row means under A).
    """
    n, heads = len(X), len(W)
    gram = torch.zeros((n, n), dtype=X.dtype)
    tokens = X.unsqueeze(1)
    for start in range(0, heads, HEADS_OF_A_BLOCK):
        block = slice(start, start + HEADS_OF_A_BLOCK)
        attention = torch.softmax(tokens @ W[block] @ tokens.mT, dim=-1)
        scores = U[block] @ tokens.mT
        slope = attention * (scores - (attention * scores).sum(-1, keepdim=True))
        for part in (attention @ tokens, tokens.mT @ (slope @ tokens)):
            rows = part.reshape(n, -1)
            gram.addmm_(rows, rows.T)
    return gram / heads


def risk_hessians(
    U: torch.Tensor, W: torch.Tensor, X: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    """Hessians of the mean logistic loss of many multi-head models (e, H, ...), (e, P, P).

    The formulas of `attention_risk_hessian`, with an axis of models.
    """
    (e, H, T, d), n = U.shape, len(X)
    phi = torch.softmax(X[:, None] @ W[:, None] @ X[:, None].mT, dim=-1)
    scores = U[:, None] @ X[:, None].mT
    weighted = phi * (scores - (phi * scores).sum(-1, keepdim=True))
    pairs = (X[..., :, None] * X[..., None, :]).reshape(n, 1, T, d * d)
    mixed, first = phi @ X[:, None], weighted @ X[:, None]
    second, moved = (part @ pairs for part in (phi, weighted))
    cross = first[..., :, None] * mixed[..., None, :]
    spread = second.unflatten(-1, (d, d)) - mixed[..., :, None] * mixed[..., None, :]
    bent = moved.unflatten(-1, (d, d)) - cross - cross.mT
    unit = H**-0.5
    by_u = unit * mixed.reshape(e, n, -1)
    by_w = unit * (X[:, None].mT @ first).reshape(e, n, -1)
    margin = y * (by_u * U.reshape(e, 1, -1)).sum(-1)
    away = torch.sigmoid(-margin)
    slope, bend = -away * y * unit / n, away * (1 - away) / n
    features = torch.cat([by_u, by_w], dim=-1)
    out = features.mT @ (bend[..., None] * features)
    tokens = slope[..., None, None] * X
    uw = torch.einsum("entd,enhtfc->ehtfdc", tokens, spread).reshape(e, H, T * d, d * d)
    squares = (tokens[..., :, None] * X[..., None, :]).reshape(e, n * T, d * d)
    ww = squares.mT[:, None] @ bent.movedim(2, 1).reshape(e, H, n * T, d * d)
    ww = ww.reshape(e, H, d, d, d, d).permute(0, 1, 2, 4, 3, 5).reshape(e, H, d * d, d * d)
    for h in range(H):
        u, w = (slice(at + h * s, at + (h + 1) * s) for at, s in ((0, T * d), (H * T * d, d * d)))
        out[:, u, w] += uw[:, h]
        out[:, w, u] += uw[:, h].mT
        out[:, w, w] += ww[:, h]
    return out


class MajorityEnsemble:
    """Sparse-majority training of all seeds at once, from a table of positions.

    The sums over tokens are one product of the bits with a table, as in
    `trauger2023sequence.library.sparse_majority.table`.
    """

    def __init__(self, models, data, settings, *, compiled: bool) -> None:
        """Copy the starts and the data of all seeds."""
        self.settings, self.models = settings, models
        e = data.embedding
        parts = (e.positions[:, :-1], e.zero[:, None], e.one[:, None])
        last = e.cls[:, None] + e.positions[:, -1:]
        self.rows = _tensor(np.concatenate([*map(np.asarray, parts), np.asarray(last)], axis=1))
        dtype = self.rows.dtype
        self.train, self.held = (
            (_tensor(bits).to(dtype), torch.nn.functional.one_hot(_tensor(labels).long(), 2))
            for bits, labels in (
                (data.bits, data.labels), (data.validation_bits, data.validation_labels),
            )
        )  # fmt: skip
        self.loss = torch.compile(self._loss) if compiled else self._loss
        self.compiled = compiled

    def _start(self) -> list[torch.Tensor]:
        m = self.models
        pairs = (m.query, m.key, m.value, m.output, m.dense, m.readout)
        kernels = [_tensor(a) for kernel, bias in pairs for a in (kernel, bias)]
        del kernels[3]  # no output depends on the bias of the keys
        return [a.clone().requires_grad_(True) for a in kernels]

    def _logits(self, p: list[torch.Tensor], bits: torch.Tensor) -> torch.Tensor:
        query, query_bias, key, value, value_bias, out, out_bias, dense, dense_bias, last, bias = p
        e, d, h, k = query.shape
        rows = self.rows
        q = (rows[:, -1:] @ query.reshape(e, d, h * k)).reshape(e, h, k) + query_bias
        r = torch.einsum("ehk,edhk->ehd", q, key) / k**0.5
        deep = (rows @ value.reshape(e, d, h * k)).reshape(e, -1, h, k).transpose(1, 2)
        values = deep @ out
        values = torch.cat([torch.ones_like(values[..., :1]), values], dim=-1)
        scores = (rows @ r.mT).mT
        place, zero, one, cls = scores[..., :-3], *scores[..., -3:].unbind(-1)
        content, fixed = values[..., :-3, :], values[..., -3:, 1:]
        widen = torch.nn.functional.pad(fixed, (1, 0))
        weight = place.exp()[..., None]
        off, on = (
            weight * s.exp()[..., None, None] * (content + widen[..., i : i + 1, :])
            for i, s in enumerate((zero, one))
        )
        constant = cls.exp()[..., None] * values[..., -1, :] + off.sum(2)
        change = (on - off).transpose(1, 2).reshape(e, -1, h * (d + 1))
        sums = (bits @ change).reshape(e, -1, h, d + 1) + constant[:, None]
        mixed = (sums[..., 1:] / sums[..., :1]).sum(2)
        shift = torch.einsum("ehk,ehkd->ed", value_bias, out) + out_bias
        matrix = dense @ last
        level = (dense_bias[:, None] @ last)[:, 0] + bias
        return torch.relu(mixed + shift[:, None]) @ matrix + level[:, None]

    def _loss(
        self, p: list[torch.Tensor], bits: torch.Tensor, classes: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self._logits(p, bits)
        entropy = torch.nn.functional.binary_cross_entropy_with_logits
        loss = entropy(logits, classes, reduction="none").mean((1, 2))
        hits = (logits[..., 1] > logits[..., 0]) == (classes[..., 1] > 0.5)
        return loss, hits.sum(1)

    def epoch(self, batches: list[torch.Tensor]) -> np.ndarray:
        """Losses, accuracies and sum of absolute weights of all seeds after one epoch, (e, 5)."""
        p, (bits, classes) = self._start(), self.train
        s = self.settings
        descent = torch.optim.SGD(p, lr=s.rate * s.decay, momentum=s.momentum, fused=True)
        total, hits, seeds = 0.0, 0, torch.arange(len(bits))[:, None]
        for pick in batches:
            descent.zero_grad()
            loss, right = self.loss(p, bits[seeds, pick], classes[seeds, pick].to(bits.dtype))
            loss.sum().backward()
            descent.step()
            total, hits = total + loss.detach() * pick.shape[1], hits + right
        with torch.no_grad():
            held, right = self._loss(p, self.held[0], self.held[1].to(bits.dtype))
            weight = sum(a.abs().flatten(1).sum(1) for a in p)
        n, validation = bits.shape[1], self.held[0].shape[1]
        columns = (total / n, hits / n, held, right / validation, weight)
        return torch.stack(columns, dim=1).numpy()


def _tensor(array) -> torch.Tensor:
    return torch.tensor(np.asarray(array))
