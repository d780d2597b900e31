"""Queries that people type on the front page, and the pages that answer each.

The names are beginnings of fragments: `topic-` is a text that says what the atlas lacks and what is
nearest.
"""

QUERIES = {
    # Of these eleven the search before 29 November 2026 answered none.
    "learning rate": ("topic-learning-rate", "experiment-bound-slack"),
    "which optimizer for attention": ("topic-which-optimiser", "question-Which-p"),
    "dropout": ("topic-dropout",),
    "Adam": ("topic-Adam", "experiment-patches"),
    "implicit bias": ("term-attention-SVM", "experiment-direction"),
    "GPT-2": ("topic-GPT-2",),
    "prune heads": ("topic-removing-heads", "question-Do-more-heads-help"),
    "overfitting": ("term-generalisation-gap", "experiment-samples"),
    "weight decay": ("topic-weight-decay",),
    "LoRA": ("topic-LoRA",),
    "positional encoding": ("topic-positional-encoding",),
    "max margin": ("term-attention-SVM", "experiment-direction"),
    "NTK": ("term-tangent-kernel",),
    "attention sink": ("term-attention-sink",),
    "how many samples do I need": ("question-How-many-samples",),
    "vacuous bounds": ("question-Why-is-every-bound-vacuous", "term-vacuous"),
    "how many heads": ("question-Do-more-heads-help", "topic-removing-heads", "experiment-heads"),
    "certify my model": ("topic-certifying", "question-What-can-be-certified"),
    "audit my model": ("topic-audit-of-a-model",),
    "rank collapse": ("term-rank-residual",),
    "generalization bound for transformers": ("paper-trauger2023sequence",),
    "Rademacher complexity": ("term-Rademacher-complexity", "experiment-rademacher-length"),
    "diffusion": ("paper-gu2024exploring", "experiment-score"),
    "is Theorem 4.2 of gu2024 right": ("theorem-gu2024exploring-4-2",),
    "convergence rate": ("experiment-rates", "experiment-convergence"),
    "quantization": ("topic-quantisation",),
    "batch size": ("topic-batch-size",),
    "W_K W_Q factored": ("experiment-factored",),
    "why does attention select one token": ("topic-why-attention-selects",),
    # Of these three the search found nothing, or the wrong page, before the evening of that day.
    "does the start matter": ("topic-the-start", "experiment-attention"),
    "factored weights keys and queries": ("topic-keys-and-queries", "experiment-factored"),
    "is p other than 2 worth it": ("topic-the-exponent", "question-Which-p"),
    "does p matter": ("question-Which-p", "experiment-direction", "experiment-joint"),
}
