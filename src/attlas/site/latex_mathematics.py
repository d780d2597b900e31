r"""Statements as LaTeX for a paper; mathematics that may not compile is printed as text.

A page can typeset `\href`, `&` or unknown commands in some way, but LaTeX stops at them or executes
them. So only commands of LaTeX, amsmath and amssymb that draw something, in closed groups, pass.
"""

import re
from collections.abc import Collection

from attlas.display.statements import Untypeset, mathml

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{ALMOST EQUAL TO}": r"$\approx$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\le$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\ge$",
    "\N{NOT EQUAL TO}": r"$\ne$",
    "\N{INFINITY}": r"$\infty$",
    "\N{RIGHTWARDS ARROW}": r"$\to$",
    "\N{MIDDLE DOT}": r"$\cdot$",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
}
_READ_BY_LATEX = re.compile(
    r"[ -~\u00c0-\u00ff\u0100-\u017e\u2013\u2014\u2018\u2019\u201c\u201d\u2026]"
)
"""Letters and dashes that LaTeX reads as UTF-8 without a package."""

_LETTER_NAMES = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu
    nu xi pi varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta
    Lambda Xi Pi Sigma Upsilon Phi Psi Omega aleph hbar imath jmath ell wp Re Im partial infty prime
    emptyset varnothing nabla surd top bot angle triangle forall exists nexists neg lnot flat
    natural sharp square blacksquare Box lozenge complement
    pm mp times ast star circ bullet dagger ddagger perp
"""
_LETTERS = frozenset(_LETTER_NAMES.split())
"""Commands that may be an argument without braces."""
_COMMAND_NAMES = """
    le leq ge geq ne neq equiv sim simeq approx cong propto ll gg lll ggg prec succ preceq succeq
    precsim succsim lesssim gtrsim lessapprox gtrapprox leqslant geqslant leqq geqq nleq ngeq nless
    ngtr asymp doteq triangleq in ni notin subset supset subseteq supseteq subsetneq supsetneq
    nsubseteq parallel nparallel mid nmid models vdash dashv bowtie
    to gets rightarrow leftarrow leftrightarrow Rightarrow Leftarrow Leftrightarrow longrightarrow
    longleftarrow longleftrightarrow Longrightarrow Longleftarrow Longleftrightarrow mapsto
    longmapsto hookrightarrow hookleftarrow uparrow downarrow updownarrow Uparrow Downarrow nearrow
    searrow swarrow nwarrow rightharpoonup leadsto implies impliedby iff upharpoonright restriction
    div cdot cap cup uplus sqcap sqcup vee wedge lor land setminus
    smallsetminus wr diamond oplus ominus otimes oslash odot amalg intercal boxplus
    boxtimes boxdot circledast dotplus ltimes rtimes
    sum prod coprod int iint iiint oint bigcap bigcup bigsqcup bigvee bigwedge bigodot bigotimes
    bigoplus biguplus
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf
    limsup ln log max min Pr sec sin sinh sup tan tanh
    langle rangle lceil rceil lfloor rfloor lbrace rbrace lbrack rbrack vert Vert lvert rvert lVert
    rVert left right middle big Big bigg Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr bigm Bigm
    displaystyle textstyle scriptstyle rm bf quad qquad thinspace medspace thickspace negthinspace
    bmod not dots ldots cdots vdots ddots dotsb dotsc colon backslash therefore because
"""
_FUNCTION_NAMES = """
    frac tfrac dfrac cfrac binom tbinom dbinom sqrt overline underline overbrace underbrace overset
    underset stackrel substack hat check tilde bar vec dot ddot acute grave breve mathring widehat
    widetilde overrightarrow overleftarrow mathrm mathbf mathit mathsf mathtt mathcal mathbb
    mathfrak mathnormal boldsymbol operatorname phantom vphantom hphantom pmod mod boxed
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
"""Commands with an argument: a group, or a token without an argument of its own."""
COMMANDS = frozenset(_COMMAND_NAMES.split()) | _LETTERS | _FUNCTIONS
"""Commands that draw something and that LaTeX with amsmath and amssymb knows."""
_TEXT = frozenset({"text", "textrm", "textbf", "textit", "textsf", "texttt", "mbox"})
_SIGNS = frozenset(
    {r"\,", r"\;", r"\:", r"\!", r"\ ", r"\|", r"\{", r"\}", r"\%", r"\#", r"\&", r"\_"}
)
_ENVIRONMENTS = frozenset(
    f"{name}matrix" for name in ("", "p", "b", "B", "v", "V", "small")
) | {"cases", "aligned"}  # fmt: skip
_SIZED = re.compile(r"\\(?:left|right|middle|[bB]igg?[lrm]?)")
"""Commands that a delimiter must follow."""
_TWO = frozenset(f"{k}{name}" for k in ("", "t", "d", "c") for name in ("frac", "binom")) | {
    *("overset", "underset", "stackrel"),
}
_FONTS = frozenset(name for name in _FUNCTIONS if name.startswith("math") and name != "mathring")
_DELIMITER = re.compile(
    r" *(?:[()\[\]|./]|\\(?:[{}|]|[lr](?:angle|ceil|floor|brace|vert|Vert)(?![a-zA-Z])))"
)
_TOKEN = re.compile(r"\\operatorname\*|\\[a-zA-Z]+|\\.|[{}&%$#~]|[^\\{}&%$#~]+", re.S)


class Unsafe(ValueError):
    """Mathematics that may not compile, with the reason."""


def latex_text(text: str) -> str:
    r"""Plain text with LaTeX's special characters escaped; unknown characters become their code.

    Examples:
        >>> print(latex_text("50% of a_b"), latex_text("字"))
        50\% of a\_b \texttt{U+5B57}
    """
    return "".join(map(_character, text))


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character.isspace():
        return " "
    if _READ_BY_LATEX.fullmatch(character):
        return character
    return rf"\texttt{{U+{ord(character):04X}}}"


def latex_mathematics(latex: str) -> str:
    r"""A statement as inline mathematics, or its source as text if it may not compile.

    Args:
        latex: mathematics without dollar signs; a sentence is one `\text{}`.

    Examples:
        >>> print(latex_mathematics(r"\|x\| \le 1"), latex_mathematics(r"\text{All $x$ are 5 %.}"))
        $\|x\| \le 1$ All $x$ are 5 \%.
        >>> print(latex_mathematics(r"\input{a}"))
        \texttt{\textbackslash{}input\{a\}}
    """
    sentence = re.fullmatch(r"\\text\{(.*)\}", latex, re.S)
    if sentence and _closed(sentence.group(1)):
        return latex_prose(sentence.group(1))
    try:
        return f"${checked(latex)}$"
    except Unsafe:
        return rf"\texttt{{{latex_text(latex)}}}"


def latex_prose(text: str) -> str:
    r"""Plain text with $mathematics$ in LaTeX; mathematics that may not compile becomes text.

    Examples:
        >>> print(latex_prose(r"Lemma 3 & $\eta = C_1^2$"))
        Lemma 3 \& $\eta = C_1^2$
    """
    return "".join(_mathematics_or_text(part) for part in re.split(r"(\$[^$\n]+\$)", text))


def _mathematics_or_text(part: str) -> str:
    if part.startswith("$") and len(part) > 2:
        try:
            return f"${checked(part[1:-1])}$"
        except Unsafe:
            return latex_text(part)
    return latex_text(part)


def checked(latex: str) -> str:
    r"""Check that mathematics (without dollar signs) compiles, and escape the text of `\text{}`.

    Required are known commands, closed groups, and alignment only inside environments.

    Raises:
        Unsafe: with the reason.

    Examples:
        >>> checked(r"a % b")
        Traceback (most recent call last):
            ...
        attlas.site.latex_mathematics.Unsafe: a bare %
    """
    latex = " ".join(latex.split())
    if re.search("' +'", latex):
        raise Unsafe("two superscripts")
    tokens = _TOKEN.findall(latex)
    if "".join(tokens) != latex:
        raise Unsafe("it ends in a backslash")
    try:
        mathml(latex)  # commands have their arguments, scripts their bases
    except Untypeset as reason:
        raise Unsafe(str(reason)) from None
    open_: list[str] = []
    out, place = [], 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        name = token[1:].rstrip("*")
        if name in _TEXT and token.startswith("\\"):
            inside, place = _group(tokens, place)
            out.append(rf"\{name}{{{latex_prose(_unescaped(inside))}}}")
            continue
        if name in ("begin", "end") and token.startswith("\\"):
            inside, place = _group(tokens, place)
            _environment(name, inside, open_)
            out.append(f"{token}{{{inside}}}")
            continue
        _nest(token, open_)
        if _SIZED.fullmatch(token) and not _delimits(tokens, place):
            raise Unsafe(f"{token} lacks its delimiter")
        remainder = "".join(tokens[place:])
        if name in _FUNCTIONS and not _arguments(remainder, 1 + (name in _TWO), ()):
            raise Unsafe(f"{token} lacks an argument")
        for script in re.finditer(r"[\^_]", "" if token.startswith("\\") else token):
            if not _arguments(token[script.end() :] + remainder, 1, _FONTS | _TEXT):
                raise Unsafe("a script lacks its argument")
        out.append(token)
    if open_:
        raise Unsafe(f"{open_[-1]} is not closed")
    return "".join(out).strip()


def _nest(token: str, open_: list[str]) -> None:
    """Check one token that is neither text nor an environment: known, and well placed."""
    if token == "{" or token == r"\left":
        open_.append(token)
    elif token == "}" or token == r"\right":
        if not open_ or open_.pop() != ("{" if token == "}" else r"\left"):
            raise Unsafe(f"{token} closes nothing")
    elif token in ("&", r"\\"):
        if not open_ or open_[-1] not in _ENVIRONMENTS:
            raise Unsafe(f"{token} outside an environment")
    elif token in ("%", "$", "#"):
        raise Unsafe(f"a bare {token}")
    elif token.startswith("\\"):
        if token not in _SIGNS and token[1:].rstrip("*") not in COMMANDS:
            raise Unsafe(f"{token} is not known")
    elif not token.isascii():
        raise Unsafe("a character that LaTeX does not read in mathematics")


def _delimits(tokens: list[str], place: int) -> bool:
    """Whether a delimiter begins at a place."""
    return bool(_DELIMITER.match("".join(tokens[place : place + 2])))


def _arguments(source: str, count: int, functions: Collection[str]) -> bool:
    """Whether a source begins with arguments: groups, letters, or commands that take none."""
    option = re.match(r" *\[[^\[\]]*\]", source)
    source = source[option.end() :] if option and not functions else source
    for _ in range(count):
        source = source.lstrip()
        if source.startswith("{"):
            _, place = _group(_TOKEN.findall(source), 0)
            source = "".join(_TOKEN.findall(source)[place:])
            continue
        command = re.match(r"\\([a-zA-Z]+)", source)
        if command is None:
            if not re.match(r"[a-zA-Z0-9*+=<>/|-]", source):
                return False
            source = source[1:]
            continue
        name = command.group(1)
        if name not in _LETTERS and name not in functions:
            return False
        source = source[command.end() :]
    return True


def _environment(name: str, inside: str, open_: list[str]) -> None:
    if inside not in _ENVIRONMENTS:
        raise Unsafe(f"the environment {inside} is not known")
    if name == "begin":
        open_.append(inside)
    elif not open_ or open_.pop() != inside:
        raise Unsafe(f"the end of {inside} closes nothing")


def _group(tokens: list[str], place: int) -> tuple[str, int]:
    """The source of the group that begins at a place, and the place after it."""
    if place >= len(tokens) or tokens[place] != "{":
        raise Unsafe("a command lacks its group")
    depth, start = 0, place + 1
    while place < len(tokens):
        depth += (tokens[place] == "{") - (tokens[place] == "}")
        place += 1
        if depth == 0:
            return "".join(tokens[start : place - 1]), place
    raise Unsafe("{ is not closed")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([%#&_{}$ ])", r"\1", text)


def _closed(text: str) -> bool:
    """Whether the braces in a text are balanced."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0
