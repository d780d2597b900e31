r"""Text to tokens for a model whose folder holds a tokenizer, and which tokens are special."""

import heapq
import math
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from attlas._files.budget import TOKENIZER, parse_json
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError, extra_needed
from attlas.transformers.tokenizer_rules import bounded_encoder, library_errors
from attlas.transformers.tokenizer_trial import require_buildable, require_known_merges

_SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "<s>", "</s>", "<pad>", "<mask>", "<unk>")
_SPECIAL = (*_SPECIAL, "<bos>", "<eos>", "<|endoftext|>", "[UNK]", "[BOS]", "[EOS]")
_MASKS = ("[MASK]", "<mask>")
_ENCLOSING = {"gpt2": ("", ""), "opt": ("</s>", ""), "roberta": ("<s>", "</s>")}
"""What opens and closes a text of each model_type whose byte pairs are split as GPT-2's are."""
_LONGEST_PIECE = 1024
_FIRST_BYTE = 3  # of llama2.c: <unk>, <s>, </s>, then the bytes


class Tokenizer(NamedTuple):
    """What a model's folder says about its tokens.

    Attributes:
        pieces: text of each token, empty where no vocabulary was found.
        special: tokens that stand for no text.
        mask: the token that hides another, or None.
        encode: text to tokens, special ones added, or None where no tokenizer was found.
        unknown: the token of what the tokenizer does not know, or None.
    """

    pieces: tuple[str, ...]
    special: tuple[int, ...]
    mask: int | None
    encode: Callable[[str], list[int]] | None
    unknown: int | None


NO_TOKENIZER = Tokenizer((), (), None, None, None)
"""Of a model without a vocabulary."""


def read_tokenizer(folder: Path, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer beside a model: tokenizer.json, vocab.txt, vocab.json with merges, or tok*.bin.

    Args:
        config: its configuration: `model_type` says what encloses a text of byte pairs, and where
            no vocabulary is found, other keys name the special tokens.

    Returns:
        The tokenizer; without `encode` where no known file is there, or where vocab.json with
        merges leaves open how a model of this type splits a text.

    Raises:
        UserError: if a file is there and cannot be read.

    Examples:
        >>> read_tokenizer(Path("/nowhere"), {}).encode is None
        True
    """
    try:
        tokenizer = _read(folder, config.get("model_type"))
    except (Damaged, OSError, ValueError, struct.error) as error:
        said = printable(str(error))[:400]
        raise UserError(f"{folder}: the tokenizer cannot be read ({said})") from None
    names = ("bos_token_id", "eos_token_id", "pad_token_id", "cls_token_id", "sep_token_id")
    if not tokenizer.pieces:
        named = [config.get(name) for name in (*names, "bos_id", "eos_id")]
        numbers = sorted({number for number in named if isinstance(number, int) and number >= 0})
        return tokenizer._replace(special=tuple(numbers))
    return tokenizer


def _read(folder: Path, kind: Any) -> Tokenizer:
    for name, reader in (
        ("tokenizer.json", _hugging_face),
        ("vocab.txt", _word_pieces),
        ("vocab.json", lambda file: _byte_pairs(file, kind)),
    ):
        if (folder / name).is_file():
            with extra_needed("the tokenizer of a model", "audit"):
                return reader(folder / name)
    for file in sorted(folder.glob("tok*.bin")) if folder.is_dir() else ():
        return _scored_pieces(file)
    return NO_TOKENIZER


def _content(file: Path) -> bytes:
    return read_plain_file(file, TOKENIZER.bytes) or b""


def _lines(file: Path) -> list[str]:
    """The lines of a vocabulary: other ends of a line than a line feed may be tokens themselves."""
    content = _content(file).removesuffix(b"\n")
    if content.count(b"\n") >= TOKENIZER.entries:
        raise Damaged(f"{file} has more than {TOKENIZER.entries} lines")
    return [line.removesuffix("\r") for line in content.decode().split("\n")] if content else []


def _named(
    pieces: list[str],
    encode: Callable[[str], list[int]] | None,
    flagged: frozenset[int] = frozenset(),
) -> Tokenizer:
    """The tokenizer; special tokens are those of known names, and those that the file flags."""
    place = {piece: number for number, piece in enumerate(pieces)}
    special = tuple(sorted({place[piece] for piece in _SPECIAL if piece in place} | flagged))
    mask = next((place[piece] for piece in _MASKS if piece in place), None)
    unknown = next((place[piece] for piece in ("[UNK]", "<unk>") if piece in place), None)
    return Tokenizer(tuple(pieces), special, mask, encode, unknown)


def _hugging_face(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    content = _content(file)
    try:
        require_buildable(content)
    except UserError as error:
        raise UserError(f"{file} {error}") from None
    with library_errors(f"{file} is not a tokenizer"):
        tokenizer = Tokenizer.from_buffer(content)
        # The file may store how a batch was shaped: every text padded to one length, and cut.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= TOKENIZER.entries:
        raise UserError(f"{file} numbers a token {largest}, of at most {TOKENIZER.entries - 1}")
    try:
        encode = bounded_encoder(tokenizer)
    except UserError as error:
        raise UserError(f"{file} {error}") from None
    with library_errors(f"{file} has no vocabulary"):
        pieces = [tokenizer.id_to_token(k) or "" for k in range(largest + 1)]
        added = tokenizer.get_added_tokens_decoder()
    flagged = frozenset(number for number, token in added.items() if token.special)
    return _named(pieces, encode, flagged)


def _word_pieces(file: Path) -> Tokenizer:
    from tokenizers import BertWordPieceTokenizer

    pieces = _lines(file)
    place = {piece: number for number, piece in enumerate(pieces)}
    lower = not any(piece != piece.lower() for piece in pieces if not piece.startswith("["))
    if not {"[UNK]", "[CLS]", "[SEP]"} <= place.keys():
        return _named(pieces, None)
    with library_errors(f"{file} holds no word pieces"):
        tokenizer = BertWordPieceTokenizer(vocab=place, lowercase=lower)
    return _named(pieces, bounded_encoder(tokenizer))


def _byte_pairs(file: Path, kind: Any) -> Tokenizer:
    from tokenizers import AddedToken, ByteLevelBPETokenizer
    from tokenizers.processors import TemplateProcessing

    place = parse_json(_content(file), TOKENIZER)
    numbers: list[Any] = list(place.values()) if isinstance(place, dict) else [None]
    if any(type(n) is not int for n in numbers) or sorted(numbers) != list(range(len(numbers))):
        raise ValueError(f"{file.name} does not number its tokens 0, 1, 2, ...")
    pieces = sorted(place, key=place.__getitem__)
    merges = file.parent / "merges.txt"
    enclosing = _ENCLOSING.get(kind, ()) if isinstance(kind, str) else ()
    ends = [piece for piece in enclosing if piece]
    if not merges.is_file() or not enclosing or not place.keys() >= set(ends):
        return _named(pieces, None)
    try:
        require_known_merges(_lines(merges), place)
    except UserError as error:
        raise UserError(f"{merges} {error}") from None
    # The mask takes the space before it, as in RoBERTa's own tokenizer.
    special = [AddedToken(piece, lstrip=piece in _MASKS) for piece in _SPECIAL if piece in place]
    first, last = enclosing
    with library_errors(f"{merges} holds no merges"):
        tokenizer = ByteLevelBPETokenizer(str(file), str(merges))
        tokenizer.add_special_tokens(special)
        tokenizer.post_processor = TemplateProcessing(
            single=f"{first} $A {last}".strip(), special_tokens=[(end, place[end]) for end in ends]
        )
    return _named(pieces, bounded_encoder(tokenizer))


def _scored_pieces(file: Path) -> Tokenizer:
    """llama2.c's tokenizer: pieces with scores, merged best score first, bytes where none fits."""
    raw = _content(file)
    pieces, scores, at = [], [], 4
    while at < len(raw):
        score, size = struct.unpack_from("<fi", raw, at)
        if not 0 <= size <= _LONGEST_PIECE or at + 8 + size > len(raw):
            raise ValueError(f"piece {len(pieces)} has {size} bytes")
        if math.isnan(score) or len(pieces) >= TOKENIZER.entries:
            raise ValueError(f"piece {len(pieces)} has no score, or is one too many")
        pieces.append(raw[at + 8 : at + 8 + size].decode("utf-8", "replace"))
        scores.append(score)
        at += 8 + size
    if len(pieces) < _FIRST_BYTE + 256:
        raise ValueError(f"{file.name} has {len(pieces)} pieces: the 256 bytes are lacking")
    place = {piece: number for number, piece in reversed(list(enumerate(pieces)))}

    def encode(text: str) -> list[int]:
        tokens: list[int] = []
        for letter in f" {text}":
            byte_tokens = [byte + _FIRST_BYTE for byte in letter.encode()]
            tokens.extend([place[letter]] if letter in place else byte_tokens)
        return [1, *_merged(tokens, pieces, scores, place)]

    return Tokenizer(tuple(pieces), (0, 1, 2), None, encode, None)


def _merged(
    tokens: list[int], pieces: list[str], scores: list[float], place: Mapping[str, int]
) -> list[int]:
    """Merge neighbours whose pieces make one, best score first, the first of equal ones."""
    n = len(tokens)
    before, after = list(range(-1, n - 1)), [*range(1, n), -1]
    heap: list[tuple[float, int, int, int, int]] = []

    def offer(left: int) -> None:
        right = after[left] if left >= 0 else -1
        if right >= 0:
            merged = place.get(pieces[tokens[left]] + pieces[tokens[right]])
            if merged is not None:
                pair = tokens[left], tokens[right]
                heapq.heappush(heap, (-scores[merged], left, *pair, merged))

    for left in range(n):
        offer(left)
    while heap:
        _, left, first, second, merged = heapq.heappop(heap)
        right = after[left]
        if right < 0 or (tokens[left], tokens[right]) != (first, second):
            continue  # one of them was merged with its other neighbour
        tokens[left], tokens[right] = merged, -1
        after[left] = after[right]
        if after[left] >= 0:
            before[after[left]] = left
        after[right] = -1
        offer(left)
        offer(before[left])
    return [token for token in tokens if token >= 0]
