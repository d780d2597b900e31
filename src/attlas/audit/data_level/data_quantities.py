"""What level data reports of every head, and of the hidden states at every depth."""

from typing import Any

from attlas.audit.quantity import EvidenceLevel, Quantity

_MEASURED, _HEURISTIC, _PROVED = (
    EvidenceLevel.MEASURED,
    EvidenceLevel.HEURISTIC,
    EvidenceLevel.PROVED,
)


def _of_rows(name: str, title: str, formula: str, meaning: str, **page: Any) -> Quantity:
    """A mean over the rows of each sequence, then over sequences, beside uniform attention's."""
    return Quantity(name, title, f"${formula}$", meaning, _MEASURED, f"{name}_null", **page)


ROW_QUANTITIES = (
    _of_rows(
        "entropy",
        "entropy of a row in nats",
        r"-\sum_ja_j\ln a_j",
        "0: one token alone",
        column="entropy",
        follow=True,
        curve="entropy in nats",
    ),
    _of_rows(
        "effective_support", "effective number of tokens", r"e^{H}", "how many tokens a row reads"
    ),
    _of_rows(
        "participation",
        "participation number of a row",
        r"1/\sum_ja_j^2",
        "tokens it reads, by weight",
    ),
    _of_rows(
        "confidence",
        "largest weight of a row",
        r"a_{(1)}",
        "near 1: every row finds one token (Voita's confidence)",
        column="confidence",
    ),
    _of_rows("top_4", "mass of the 4 largest weights", r"\sum_{k\le4}a_{(k)}", "of a row"),
    _of_rows("top_16", "mass of the 16 largest weights", r"\sum_{k\le16}a_{(k)}", "of a row"),
    _of_rows(
        "log_confidence",
        "mean log of the largest weight",
        r"\ln a_{(1)}",
        "a product over rows: one uncertain row costs more than in the confidence",
    ),
    _of_rows(
        "distant_confidence",
        "largest weight of a distant token, not special and more than 4 places away",
        r"\max_{|i-j|>4,\,j\notin S}a_{ij}",
        "high: rows find one token by what it is, not by where it stands",
        column="distant confidence",
    ),
    _of_rows("previous_mass", "weight of the previous token", r"a_{i,i-1}", "a local head"),
    _of_rows("next_mass", "weight of the next token", r"a_{i,i+1}", "a local head"),
    _of_rows("self_mass", "weight of the row's own token", r"a_{ii}", "a head that stays"),
    _of_rows("first_mass", "weight of the first token", r"a_{i1}", "rest position or sink"),
    _of_rows("special_mass", "weight of special tokens", r"\sum_{j\in S}a_{ij}", "rest position"),
)
"""In the order of `MapStatistics`."""

SINKS = ("natural", "shuffled", "repeated")
"""Texts of the sink protocol: as they are, tokens in another order, one token repeated."""

SINK = 0.3
"""Mean weight of the first token above which a head sinks, after Gu et al."""

_SVM = (
    "rows of a few short sequences; in the space of normalised tokens, but in that of each head's "
    "queries and keys where these are rotated or normalised: margins of the two do not compare"
)

_SINK_PAGE: dict[str, Any] = {
    "column": "sink",
    "follow": True,
    "curve": "weight of the first token",
}

HEAD_QUANTITIES = (
    *ROW_QUANTITIES,
    Quantity(
        "entropy_floor",
        "least entropy that the spread of a row's logits allows",
        r"$\ln(1+(T-1)\beta)+\frac{s\sqrt{T(T-1)}\beta}{1+(T-1)\beta},"
        r"\ \beta=e^{-s\sqrt{T/(T-1)}}$",
        "mean over rows, s the norm of the centred logits that were seen; attained if all but "
        "one of a row's logits are equal",
        _MEASURED,
    ),
    *(
        Quantity(
            f"sink_{text}",
            f"attention that the first token receives, {text} tokens",
            r"$\alpha_1=\frac1T\sum_{i}a_{i1}$",
            "above 0.3: a sink; a head that sinks for shuffled or repeated tokens, too, sinks by "
            "position",
            _MEASURED,
            f"sink_{text}_null",
            **(_SINK_PAGE if text == "natural" else {}),
        )
        for text in SINKS
    ),
    Quantity(
        "sink_gain",
        "least norm of the attention map that its first column implies",
        r"$\sqrt T\,\alpha_1\le\|P\|_2$",
        "mean over the sequences of the sink protocol, natural tokens; at fixed weights values "
        "change by up to this factor, at most the root of T, which a perfect sink reaches",
        _MEASURED,
        "sink_gain_null",
    ),
    Quantity(
        "positional_share",
        "share of rows whose largest weight exceeds 0.8 at one relative position",
        "",
        "above 0.9: a positional head after Voita et al.",
        _MEASURED,
        "positional_share_null",
    ),
    Quantity(
        "positional_offset",
        "most frequent relative position of a weight above 0.8",
        "",
        "-1: the previous token; none where no weight is above 0.8",
        _MEASURED,
    ),
    Quantity(
        "largest_logit",
        "largest absolute logit",
        r"$\max|x_i'Ax_j+\dots|$",
        "over all sequences; 100 is where training with clipped logits clips",
        _MEASURED,
        follow=True,
        curve="largest logit",
    ),
    Quantity(
        "logit_share",
        "largest logit over the certified one",
        "",
        "1: the data reach what the weights allow; the certificate is that of level weights for "
        "as many tokens as the longest sequence has; none where that is infinite",
        _MEASURED,
        column="logit / certified",
    ),
    Quantity(
        "ball_certificate",
        "certificate of the change of the head's output in the ball",
        r"$\mathrm{Lip}$",
        "the ball holds all normalised tokens; the Lipschitz constant of level weights, for as "
        "many tokens as the local certificate has",
        _PROVED,
        ladder="certificate, every text",
    ),
    Quantity(
        "observed_certificate",
        "certificate of the change of the head's output in the ball of the tokens that were read",
        r"$\mathrm{Lip}$ at $R=\max_j|u_j|$",
        "for tokens no longer than the longest of the local certificate's; the norm before a head "
        "makes all tokens nearly equally long, so that it is far below the certificate in the "
        "ball only where no norm stands there",
        _PROVED,
    ),
    Quantity(
        "ball_attack",
        "largest change of the head's output reached in the ball",
        "",
        "by an ascent that starts at the tokens that were read; tokens need not be ones that the "
        "model can produce",
        _MEASURED,
        ladder="attack, every text",
    ),
    Quantity("ball_ratio", "attack over certificate in the ball", "", "1: attained", _MEASURED),
    Quantity(
        "local_certificate",
        "certificate of the change of the head's output at the tokens that were read",
        r"$\|J\|\le\dots$",
        "mean over a few short sequences; per unit of change of the normalised tokens",
        _PROVED,
        ladder="certificate, these texts",
    ),
    Quantity(
        "local_attack",
        "largest change of the head's output reached at the tokens that were read",
        r"$|Ju|,\ |u|=1$",
        "by power iteration; a lower bound on the same norm",
        _MEASURED,
        ladder="attack, these texts",
    ),
    Quantity(
        "local_ratio",
        "attack over certificate at the tokens that were read",
        "",
        "1: the certificate is attained",
        _MEASURED,
        column="attack / certificate",
    ),
    Quantity(
        "svm_margin",
        "largest margin of the selected tokens",
        r"$1/\|W_{mm}\|_F$",
        _SVM + "; 0: no matrix selects these tokens; the null selects random visible tokens",
        _MEASURED,
        "svm_margin_null",
    ),
    Quantity(
        "svm_reached",
        "margin of the head's own matrix, of norm 1 in the span of the data",
        "",
        _SVM,
        _MEASURED,
        "svm_reached_null",
    ),
    Quantity(
        "svm_cosine",
        "cosine of the head's matrix and the max-margin matrix",
        r"$\langle W,W_{mm}\rangle/(\|W\|_F\|W_{mm}\|_F)$",
        _SVM + "; one less it is the directional divergence",
        _MEASURED,
        "svm_cosine_null",
    ),
    Quantity(
        "nearest_distance",
        "distance of the maps from the nearest other head's",
        r"mean over rows of $(\mathrm{JS}/\ln 2)^{1/2}$",
        "0: another head attends alike; the null is the smallest distance to any head at other "
        "rows, and the interval that of the chosen pair",
        _HEURISTIC,
        "nearest_distance_null",
    ),
    Quantity("nearest_layer", "layer of the head with the nearest maps", "", "", _MEASURED),
    Quantity("nearest_head", "number of the head with the nearest maps", "", "", _MEASURED),
)

DEPTH_QUANTITIES = (
    Quantity(
        "residual_l2",
        "relative distance of the hidden states from equal ones",
        r"$\min_c\|X-1c'\|_F/\|X\|_F$",
        "0: all tokens are alike; the null has independent hidden states of mean 0",
        _MEASURED,
        "residual_l2_null",
    ),
    Quantity(
        "residual_composite",
        "relative distance of the hidden states from their mean, composite norm",
        r"$\|X-1m'\|/\|X\|,\ \|X\|=\sqrt{\|X\|_1\|X\|_\infty}$",
        "the norm of the theory of rank collapse; not minimised over c",
        _MEASURED,
    ),
    Quantity(
        "mean_cosine",
        "mean cosine of two hidden states",
        "",
        "1: all tokens point one way",
        _MEASURED,
        "mean_cosine_null",
    ),
    Quantity(
        "largest_entry",
        "largest absolute entry of a hidden row",
        "",
        "hundreds of times the others: a massive activation",
        _MEASURED,
    ),
    Quantity(
        "largest_token",
        "largest norm of a token as the attention reads it",
        r"$\max_j|x_j|$",
        "",
        _MEASURED,
    ),
    Quantity(
        "certified_token",
        "certified largest norm of a token as the attention reads it",
        r"$\max_{|u|^2\le d}|g\odot u+b|$",
        "from the norm's gain and bias; NaN where no norm stands before the attention",
        _PROVED,
    ),
)
