r"""Statements: LaTeX to MathML that is safe to place in a page.

latex2mathml passes text of `\text{}` and links of `\href{}` through unescaped, so this module takes
its tree (never its string), strips it to the elements and attributes of presentation MathML, and
writes it again with everything escaped. latex2mathml also lets unknown commands through as text:
here they are an error, which the page shows beside the source.
"""

import html
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from functools import cache

from markupsafe import Markup, escape

_ELEMENT_NAMES = """
    math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom
    msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd
"""
_ATTRIBUTE_NAMES = """
    display displaystyle scriptlevel stretchy fence form separator largeop movablelimits
    symmetric accent accentunder lspace rspace minsize maxsize linethickness width height depth
    columnalign rowspacing columnspacing
"""
_ELEMENTS = frozenset(_ELEMENT_NAMES.split())
_ATTRIBUTES = frozenset(_ATTRIBUTE_NAMES.split())
# Browsers draw `mathvariant` only where it is "normal": letters are mapped to the characters
# that Unicode has for them.
_ALPHABETS = {
    "script": "MATHEMATICAL SCRIPT",
    "bold-script": "MATHEMATICAL BOLD SCRIPT",
    "bold": "MATHEMATICAL BOLD",
    "bold-italic": "MATHEMATICAL BOLD ITALIC",
    "fraktur": "MATHEMATICAL FRAKTUR",
    "double-struck": "MATHEMATICAL DOUBLE-STRUCK",
    "sans-serif": "MATHEMATICAL SANS-SERIF",
    "monospace": "MATHEMATICAL MONOSPACE",
}
_SPELLINGS = (
    (re.compile(r"\\operatorname\*"), r"\\operatorname"),
    (re.compile(r"\\arg(?![a-zA-Z])"), r"\\operatorname{arg}"),
    (re.compile(r"\\vert(?![a-zA-Z])"), "|"),
    (re.compile(r"\\Vert(?![a-zA-Z])"), r"\\|"),
)
_TOKENS = re.compile(r"\\(?:[a-zA-Z]+|.)|[{}()\[\]=<>+|-]", re.S)
_OPEN = frozenset({"{", "(", "[", r"\{", r"\langle", r"\begin", r"\left"})
_CLOSE = frozenset({"}", ")", "]", r"\}", r"\rangle", r"\end", r"\right"})
_BARS = frozenset({r"\|", "|"})
_SPACES = frozenset({r"\quad", r"\qquad"})
_RELATION_NAMES = r"""
    = < > \le \leq \ge \geq \to \implies \iff \approx \equiv \Rightarrow \Longrightarrow
    \ll \gg \sim \asymp \subseteq
"""
_RELATIONS = frozenset(_RELATION_NAMES.split())
_TERMS = frozenset("+-")
# latex2mathml calls these identifiers; browsers space operators.
# And these operators, as it does names such as min.
_LETTERS = frozenset("∅∞…")
_TIGHT = frozenset("/|‖")
_SIGNS = frozenset("+−-±")
# What stands under its name when displayed.
_LIMITS = frozenset({"min", "max", "sup", "inf", "lim", "argmin", "argmax"})
_UNDER = {"msub": "munder", "msubsup": "munderover"}
_BEFORE_A_SIGN = frozenset("([{⟨,;:=<>≤≥→⇒⟹/")
_ROWS = frozenset({"math", "mrow", "mstyle", "mpadded", "msqrt", "mtd"})
_SCRIPTED = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover"})
_OPERATORS = frozenset("⟨⟩⌈⌉⌊⌋⟹⟸⟺∥:")
# In text: a number in e-notation, signs that keyboards lack, what may begin no line.
_POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+−-]?)0*(\d+)(?!\w|\.\d)")
_PRINTED = (
    (re.compile(r"(?<![\w)\]}.-])-(?=\.?\d)"), "−"),
    (re.compile(r"(?<![<=>])<=(?![=>])"), "≤"),
    (re.compile(r"(?<![<=>])>=(?![=>])"), "≥"),
    (re.compile(r"(?<=\d) %"), "\N{NO-BREAK SPACE}%"),
)
_CLOSING = re.compile(r"[.,;:!?)\]%]+")
_SCRIPTS = frozenset({"msup", "msub", "msubsup"})
_BRACKETS = {")": "(", "]": "[", "}": "{", "⟩": "⟨"}
# Characters of source before a line may end: a short left side keeps its relation.
_SHORTEST = {"relation": 16, "term": 32}


class Untypeset(ValueError):
    """A statement that could not be typeset, with the reason."""


def typeset(latex: str) -> Markup:
    r"""MathML of a statement, in pieces between which a narrow page may end a line.

    A statement is cut at its outermost `\quad`s, and a long one before outermost relations and
    terms. A sentence in `\text{}` is prose, with its mathematics between dollar signs. Where MathML
    cannot be made, the source follows as code with the reason.

    Examples:
        >>> print(typeset("x"))
        <span class="maths"><span><math displaystyle="true"><mi>x</mi></math></span></span>
        >>> print(typeset(r"\text{For every $x$ here.}"))
        <span class="maths"><span>For every <math><mi>x</mi></math> here.</span></span>
        >>> print(typeset(r"\unknown{x}"))  # doctest: +NORMALIZE_WHITESPACE
        <span class="untypeset"><code>\unknown{x}</code>
        <small>not typeset: \unknown is not known</small></span>
    """
    sentence = re.fullmatch(r"\\text\{([^{}]*|[^{}]*\$.*\$[^{}]*)\}", latex, re.S)
    if sentence and "$" in sentence.group(1):
        return Markup('<span class="maths"><span>{}</span></span>').format(prose(sentence.group(1)))
    try:
        lines = [
            Markup("<wbr>").join(
                mathml(p, display=True, continued=i > 0) for i, p in enumerate(pieces)
            )
            for pieces in split(latex)
        ]
    except Untypeset as reason:
        return Markup(
            '<span class="untypeset"><code>{}</code> <small>not typeset: {}</small></span>'
        ).format(latex, str(reason))
    spans = (Markup("<span>{}</span>").format(part) for part in lines)
    return Markup('<span class="maths">{}</span>').format(Markup(" ").join(spans))


def split(latex: str) -> list[list[str]]:
    r"""Cut mathematics, outside all groups, at quads and before relations and terms.

    Returns:
        For each part between quads its pieces, none empty.

    Examples:
        >>> split(r"a < b \quad \text{if \quad c}, \qquad d")
        [['a < b'], ['\\text{if \\quad c},'], ['d']]
        >>> split(r"\|W_1 + W_2\|_{p,p} \le 1")
        [['\\|W_1 + W_2\\|_{p,p}', '\\le 1']]
        >>> split("a(b + c + d + e)_+")  # a sign below or above is no term
        [['a(b + c + d + e)_+']]
    """
    lines: list[list[str]] = [[]]
    depth, barred, start, before = 0, False, 0, ""
    for token in _TOKENS.finditer(latex):
        text, place = token.group(), token.start()
        if text in _OPEN:
            depth += 1
        elif text in _CLOSE:
            depth -= 1
        elif text in _BARS:
            barred = not barred
        elif depth == 0 and not barred:
            long = place - start
            if text in _SPACES:
                lines[-1].append(latex[start:place])
                lines.append([])
                start = token.end()
            elif (text in _RELATIONS and long >= _SHORTEST["relation"] and before != r"\not") or (
                text in _TERMS and long >= _SHORTEST["term"] and latex[place - 1] not in "_^"
            ):
                lines[-1].append(latex[start:place])
                start = place
        before = text
    lines[-1].append(latex[start:])
    nonempty = [[piece.strip() for piece in part if piece.strip()] for part in lines]
    return [part for part in nonempty if part] or [[latex]]


@cache
def _refusals() -> tuple[type[Exception], ...]:
    """What latex2mathml raises; its exceptions have no class in common."""
    from latex2mathml import exceptions

    known = (e for e in vars(exceptions).values() if isinstance(e, type))
    named = tuple(e for e in known if issubclass(e, Exception))
    return (*named, StopIteration, IndexError, KeyError, ValueError)


@cache
def mathml(latex: str, display: bool = False, continued: bool = False) -> Markup:
    r"""One `<math>` element of one piece of mathematics, without namespaces, for HTML.

    Args:
        display: large fractions, and limits above and below sums.
        continued: the piece continues a line, so that a first sign is between terms.

    Raises:
        Untypeset: if latex2mathml refuses it or does not know one of its commands.

    Examples:
        >>> print(mathml(r"\text{<b>}"))
        <math><mtext>&lt;b&gt;</mtext></math>
    """
    from latex2mathml.converter import convert_to_element  # urllib and sax with it, so late

    source = latex
    for pattern, spelling in _SPELLINGS:
        source = pattern.sub(spelling, source)
    try:
        tree = convert_to_element(source, xmlns="")
    except _refusals() as error:
        reason = str(error) or type(error).__name__.removesuffix("Error")
        raise Untypeset(reason) from None
    clean = _clean(tree)
    if continued and len(clean) > 1 and clean[0].tag == "mo":
        clean[0].set("form", "infix")
    if display:
        clean.set("displaystyle", "true")
        for node in clean.iter():
            if node.tag in _UNDER and (node[0].text or "") in _LIMITS:
                node.tag = _UNDER[node.tag]
    return Markup(ElementTree.tostring(clean, encoding="unicode", short_empty_elements=False))


def prose(text: str) -> Markup:
    """Plain text with `code` and $mathematics$ in it, as safe markup; $$a formula$$ is a line.

    A number such as -2e-5 in the text has a true minus sign and a raised power, and no line begins
    with the comma after a formula.

    Examples:
        >>> print(prose("<b> of `x`, $p$"))
        &lt;b&gt; of <code>x</code>, <math><mi>p</mi></math>
        >>> print(prose("-2e-05 <= 8e+14"))
        −2 × 10<sup>−5</sup> ≤ 8 × 10<sup>14</sup>
    """
    output: list[Markup] = []
    after_formula = False
    for part in re.split(r"(\$\$[^$]+\$\$|\$[^$\n]+\$|`[^`\n]+`)", text):
        if part.startswith("$$") and len(part) > 4:
            formula = typeset(" ".join(part[2:-2].split()))
            output.append(Markup('<span class="formula">{}</span>').format(formula))
        elif part.startswith("$") and len(part) > 2:
            formula, before = _inline(part[1:-1]), str(output[-1]) if output else ""
            if before.endswith(("(", "[")):
                output[-1] = Markup(before[:-1])
                formula = _unbroken(formula, opening=before[-1])
            output.append(formula)
            after_formula = True
            continue
        elif part.startswith("`") and len(part) > 2:
            output.append(Markup("<code>{}</code>").format(part[1:-1]))
        else:
            signs = _CLOSING.match(part) if after_formula else None
            if signs:
                output[-1] = _unbroken(output[-1], closing=signs.group())
                part = part[signs.end() :]
            output.append(_text(part))
        after_formula = False
    return Markup("").join(output)


def _unbroken(formula: Markup, opening: str = "", closing: str = "") -> Markup:
    """A formula whose first or last piece stays on one line with the sign beside it."""
    pieces = str(formula).split("<wbr>")
    place = 0 if opening else -1
    span = Markup('<span class="kept">{}{}{}</span>')
    pieces[place] = span.format(opening, Markup(pieces[place]), closing)
    return Markup("<wbr>".join(pieces))


def _text(text: str) -> Markup:
    """Text with its numbers and relations as print has them."""
    for sign, printed in _PRINTED:
        text = sign.sub(printed, text)
    output, start = [], 0
    for match in _POWER.finditer(text):
        mantissa, sign, power = match.groups()
        factor = "" if mantissa == "1" else f"{mantissa} × "
        power = "−" * (sign in ("-", "−")) + power
        output += [
            escape(text[start : match.start()]),
            Markup("{}10<sup>{}</sup>").format(factor, power),
        ]
        start = match.end()
    return Markup("").join([*output, escape(text[start:])])


def _inline(latex: str) -> Markup:
    lines = split(latex)
    pieces = lines[0] if len(lines) == 1 else [latex]
    try:
        # A line may end before a relation: browsers do not break mathematics themselves.
        return Markup("<wbr>").join(mathml(p, continued=i > 0) for i, p in enumerate(pieces))
    except Untypeset:
        return Markup("<code>{}</code>").format(latex)


def _clean(node: ElementTree.Element) -> ElementTree.Element:
    """The node with allowed names only, its text unescaped (writing escapes it again)."""
    if node.tag not in _ELEMENTS:
        raise Untypeset(f"it gives the element '{node.tag}'")
    attributes = {name: value for name, value in node.attrib.items() if name in _ATTRIBUTES}
    if attributes.get("display") == "inline":
        del attributes["display"]
    variant = node.attrib.get("mathvariant", "")
    text = html.unescape(node.text or "")
    if node.tag == "mi" and text in _OPERATORS:
        return _operator(text)
    tag = node.tag
    if tag == "mo" and (text in _LETTERS or (len(text) > 1 and text.isascii() and text.isalpha())):
        tag, attributes = "mi", {}
    if tag == "mo" and text in _TIGHT:
        attributes |= {"lspace": "0", "rspace": "0"}
    # Capital Greek letters stand upright, as TeX sets them.
    if node.tag == "mi" and (variant == "normal" or (len(text) == 1 and "Α" <= text <= "Ω")):
        attributes["mathvariant"] = "normal"
    new = ElementTree.Element(tag, attributes)
    if text.startswith("\\") and len(text) > 1 and node.tag != "mtext":
        raise Untypeset(f"{text} is not known")
    new.text = "".join(_letter(character, variant) for character in text)
    children = [_clean(child) for child in node]
    # The one `mrow` around everything has no effect.
    if node.tag == "math" and len(children) == 1 and children[0].tag == "mrow":
        children = list(children[0])
    # The children of fractions and scripts have places, only those of rows are neighbours.
    row = tag in _ROWS
    for place, child in enumerate(children):
        if row and place:
            before = children[place - 1]
            _place_sign(before, child)
            if _needs_space(before, child):
                ElementTree.SubElement(new, "mspace", {"width": "0.167em"})
        new.append(child)
    if row:
        _group_tall_brackets(new)
    return new


def _group_tall_brackets(row: ElementTree.Element) -> None:
    """Give a script to a pair of tall brackets: browsers leave one small that is a base alone."""
    for script in list(row):
        if script.tag not in _SCRIPTS or script[0].get("minsize") is None:
            continue
        closing = script[0].text or ""
        group, depth = [script[0]], 1
        for node in reversed(list(row)[: list(row).index(script)]):
            group.insert(0, node)
            text = _base(node).text if node.tag != "mtext" else ""
            depth += (text == closing) - (text == _BRACKETS.get(closing))
            if not depth:
                break
        if depth:
            continue
        for node in group[:-1]:
            row.remove(node)
        script.remove(script[0])
        script.insert(0, ElementTree.Element("mrow"))
        script[0].extend(group)


def _place_sign(before: ElementTree.Element, sign: ElementTree.Element) -> None:
    """A plus or minus after a bracket, a comma or a relation belongs to what follows."""
    if (
        sign.tag == "mo"
        and sign.text in _SIGNS
        and before.tag == "mo"
        and before.text in _BEFORE_A_SIGN
    ):
        sign.set("form", "prefix")


def _needs_space(before: ElementTree.Element, after: ElementTree.Element) -> bool:
    """Between a name such as log and its argument, and between two norms."""
    if _is_function(before):
        return _opens(after)
    return _base(before).text == _base(after).text == "‖"


def _base(node: ElementTree.Element) -> ElementTree.Element:
    """The base of scripts, or the node itself."""
    return _base(node[0]) if node.tag in _SCRIPTED and len(node) else node


def _operator(text: str) -> ElementTree.Element:
    new = ElementTree.Element("mo", {"stretchy": "false"})
    new.text = text
    return new


def _is_function(node: ElementTree.Element) -> bool:
    """Whether it is a name such as log, perhaps with a script."""
    text = _base(node).text or ""
    return _base(node).tag in ("mi", "mo") and len(text) > 1 and text.isalpha()


def _opens(node: ElementTree.Element) -> bool:
    """Whether an argument without brackets begins here."""
    return node.tag not in ("mo", "mspace", "mtext") or _is_function(node)


def _letter(character: str, variant: str) -> str:
    alphabet = _ALPHABETS.get(variant)
    if alphabet is None or not (character.isascii() and character.isalnum()):
        return character
    size = "DIGIT" if character.isdigit() else "CAPITAL" if character.isupper() else "SMALL"
    name = unicodedata.name(character).rsplit(" ", 1)[-1]
    for prefix in (
        alphabet,
        alphabet.removeprefix("MATHEMATICAL ").replace("FRAKTUR", "BLACK-LETTER"),
    ):
        try:
            return unicodedata.lookup(f"{prefix} {size} {name}")
        except KeyError:
            continue
    return character
