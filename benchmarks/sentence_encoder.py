"""An audit of a sentence encoder by pairs, from its training to what the audit advises.

A BERT of two layers with four heads of 16 (vocabulary of 4,000 word pieces, mean over tokens) is
trained on Portuguese-English sentences by contrast within batches of 128, temperature 0.05, AdamW,
for at most five minutes of the processor. Sentences of Tatoeba that stand in no training pair are
held out: 512 measure the retrieval of a translation by cosine, and 64 of these are the pairs of
`attlas audit --pairs --level deep`. The rows below are its findings as it words them.

`python -m benchmarks.sentence_encoder` needs ATTLAS_DATA, torch, transformers and tokenizers; with
a folder it leaves the model, the pairs and the audit there.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers

from attlas.data.portuguese_english import load_portuguese_english
from benchmarks.interleave import write_results

BUDGET_SECONDS = 280.0
HELD, PAIRS, BATCH, TOKENS, VOCABULARY, RATE, TEMPERATURE = 512, 64, 128, 32, 4000, 2e-3, 0.05
MOST_WORDS = 20


def sentences(seed: int = 0) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs to train on, and pairs of Tatoeba both of whose sentences stand in none of them."""
    corpora = load_portuguese_english()
    short = {
        name: [pair for pair in rows if max(len(side.split()) for side in pair) <= MOST_WORDS]
        for name, rows in corpora.items()
    }
    rows = short["tatoeba"]
    order = np.random.default_rng(seed).permutation(len(rows))
    seen: set[str] = set()
    held: list[tuple[str, str]] = []
    for place in order:
        if len(held) < HELD and not seen & set(rows[place]):
            held.append(rows[place])
            seen |= set(rows[place])
    train = [pair for name in short for pair in short[name] if not seen & set(pair)]
    return train, held


def word_pieces(train: list[tuple[str, str]]) -> Any:
    """A tokenizer of word pieces of both languages."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(strip_accents=False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator((side for pair in train for side in pair), trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip


def embedded(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Mean of the hidden states of each sentence, of length 1."""
    mask = (ids != 0).long()
    states = model(input_ids=ids, attention_mask=mask).last_hidden_state
    mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return torch.nn.functional.normalize(mean, dim=-1)


def padded(tokenizer: Any, texts: list[str]) -> torch.Tensor:
    """Token numbers, zeros at the end."""
    ids = tokenizer(texts, truncation=True, max_length=TOKENS)["input_ids"]
    rows = [torch.tensor(row) for row in ids]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def trained(seed: int = 0) -> tuple[Any, Any, list[tuple[str, str]], dict[str, Any]]:
    """Model, tokenizer, pairs held out, and what the training was."""
    torch.manual_seed(seed)
    train, held = sentences(seed)
    tokenizer = word_pieces(train)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=128, max_position_embeddings=64, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.BertModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    ids = [padded(tokenizer, [pair[side] for pair in train]) for side in (0, 1)]
    draw = np.random.default_rng(seed)
    started, steps = time.process_time(), 0
    while (share := (time.process_time() - started) / BUDGET_SECONDS) < 1:
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (steps + 1) / 50) * (1.02 - share)
        rows = torch.as_tensor(draw.integers(len(train), size=BATCH))
        sides = [side[rows] for side in ids]
        sides = [side[:, : int((side != 0).sum(1).max())] for side in sides]
        first, second = (embedded(model, side) for side in sides)
        scores = first @ second.T / TEMPERATURE
        wanted = torch.arange(BATCH)
        loss = sum(torch.nn.functional.cross_entropy(s, wanted) for s in (scores, scores.T)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    model.eval()
    with torch.no_grad():
        first, second = (
            embedded(model, padded(tokenizer, [pair[side] for pair in held])) for side in (0, 1)
        )
    right = (first @ second.T).argmax(1) == torch.arange(len(held))
    facts = {
        "training_pairs": len(train),
        "steps": steps,
        "core_seconds": time.process_time() - started,
        "retrieval_accuracy": float(right.double().mean()),
        "documents": len(held),
        "accuracy_of_chance": 1 / len(held),
    }
    return model, tokenizer, held, facts


def audited(folder: Path) -> dict[str, Any]:
    """The document of the audit of the model in a folder."""
    command = [
        *(sys.executable, "-m", "attlas", "audit", str(folder / "encoder"), "--level", "deep"),
        *("--pairs", str(folder / "pairs.tsv"), "--out", str(folder / "audit.html")),
        *("--json", str(folder / "audit.json")),
    ]
    subprocess.run(command, check=True)
    return json.loads((folder / "audit.json").read_text())


def main(folder: Path) -> None:
    """Train, audit and write `results/sentence_encoder.json`."""
    model, tokenizer, held, facts = trained()
    model.save_pretrained(folder / "encoder")
    tokenizer.save_pretrained(folder / "encoder")
    lines = ["\t".join(pair) for pair in held[:PAIRS]]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = audited(folder)
    cases = [{"case": "training and retrieval", **facts}]
    seen = document["facts"]
    names = [f"retrieval_accuracy{end}" for end in ("", "_low", "_high")]
    cases.append({"case": f"the audit, {PAIRS} pairs", **{name: seen[name] for name in names}})
    cases += [
        {"case": decision["what"], "action": decision["action"], "effect": decision["effect"]}
        for decision in document["decisions"]
    ]
    print(json.dumps(cases, indent=1))
    write_results("sentence_encoder", cases, threads=torch.get_num_threads())


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
