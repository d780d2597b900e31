"""Multi-head attention, its gradient and descent on the logistic loss, in NumPy, head by head."""

import numpy as np


def output(U, W, x):
    """H^(-1/2) sum_h <U_h, softmax(x W_h x') x>."""
    total = 0.0
    for u, w in zip(U, W, strict=True):
        total += np.sum(u * (attention(w, x) @ x))
    return total / len(U) ** 0.5


def attention(w, x):
    """Row by row, each sums to one."""
    weights = np.exp(x @ w @ x.T)
    return weights / weights.sum(axis=1, keepdims=True)


def slope(U, W, x):
    """The gradient of the output by U and by W."""
    by_U, by_W = np.zeros(U.shape), np.zeros(W.shape)
    for h, (u, w) in enumerate(zip(U, W, strict=True)):
        weights = attention(w, x)
        by_U[h] = weights @ x
        for t, row in enumerate(weights):
            values = x @ u[t]
            by_W[h] += np.outer(x[t], x.T @ (row * (values - row @ values)))
    return by_U / len(U) ** 0.5, by_W / len(U) ** 0.5


def loss(U, W, X, y):
    """The mean logistic loss."""
    return np.mean([np.log1p(np.exp(-b * output(U, W, x))) for x, b in zip(X, y, strict=True)])


def loss_slope(U, W, X, y):
    """Its gradient by U and by W."""
    parts = [np.zeros(U.shape), np.zeros(W.shape)]
    for x, b in zip(X, y, strict=True):
        factor = -b / (1 + np.exp(b * output(U, W, x))) / len(y)
        for part, piece in zip(parts, slope(U, W, x), strict=True):
            part += factor * piece
    return parts


def descent(U, W, X, y, rate, steps, attention_rate=None):
    """All parameters along gradient descent, the start first."""
    path = [(U, W)]
    for _ in range(steps):
        U, W = path[-1]
        by_U, by_W = loss_slope(U, W, X, y)
        path.append((U - rate * by_U, W - (attention_rate or rate) * by_W))
    return path


def length(*arrays):
    """The Euclidean norm of all numbers together."""
    return np.sqrt(sum(np.sum(np.square(a)) for a in arrays))


def ntk(U, W, X):
    """The Gram matrix of the gradients of the outputs."""
    rows = np.array([np.concatenate([a.ravel() for a in slope(U, W, x)]) for x in X])
    return rows @ rows.T
