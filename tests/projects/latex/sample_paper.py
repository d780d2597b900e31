"""A small paper in LaTeX with what papers do, written for the tests."""

MAIN = r"""
\documentclass{article}
\usepackage{amsthm,thmtools,thm-restate}
\title{On tokens\thanks{We thank nobody.} and \emph{margins}}
\newtheorem{theorem}{Theorem}[section]
\newtheorem{lemma}[theorem]{Lemma}
\newtheorem{assumption}{Assumption}
\newtheorem*{remark}{Remark}
\declaretheorem[name=Proposition,sibling=theorem]{prop}
\newcommand{\E}[1][x]{\mathbb{E}_{#1}}
\newcommand{\norm}[1]{\|#1\|}
\DeclareMathOperator{\tr}{tr}
% \begin{theorem} This is a remark of the author. \end{theorem}
\begin{document}
\section{Results}
\begin{assumption}\label{as:step} $\eta\le1$ \end{assumption}
\begin{theorem}[Descent]\label{thm:descent}
  Under \cref{as:step}, $\E f(x_t)\le \tr A$.
\end{theorem}
\input{sections/more}
\begin{verbatim}
\begin{theorem} no statement \end{theorem}
\end{verbatim}
\appendix
\section{Proofs}
\halving*
\begin{theorem}[Restatement of Theorem \ref{thm:descent}]
  Under \cref{as:step}, $\E f(x_t) \le \tr A$
\end{theorem}
\begin{lemma} Let Assumption 1 hold; then $\norm{x}=1$ or $a < b$. \end{lemma}
\end{document}
"""
MORE = r"""
\section{More}
\begin{restatable}[Halving]{prop}{halving}\label{prop:half} $x_t \to 0$ \end{restatable}
\begin{remark} Nothing is claimed here. \end{remark}
\begin{lemma}\label{lem:exists} There exists $x$ with $\norm{x} = 2$. \end{lemma}
"""


def write(folder):
    """Write the paper into a folder; its main file."""
    (folder / "sections").mkdir(parents=True, exist_ok=True)
    (folder / "sections" / "more.tex").write_text(MORE)
    (folder / "main.tex").write_text(MAIN)
    return folder / "main.tex"
