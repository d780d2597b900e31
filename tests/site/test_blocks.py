"""Blocks of text: what is markup in them, and that nothing else is."""

from markupsafe import Markup

from attlas.site.blocks import blocks, inline, rendered


def shown(text):
    return str(rendered(blocks(text), 2, lambda target: f"#{target}", picture))


def picture(target, caption):
    return Markup("<figure>{}: {}</figure>").format(target, caption)


def test_text_is_escaped_and_an_address_as_well():
    assert inline('<b> [a][x"y]', str) == '&lt;b&gt; <a href="x&#34;y">a</a>'


def test_stars_in_formulas_and_code_are_no_emphasis():
    assert "<em>" not in inline("$a * b$, `c * d` and $W_*$ * 2", str)
    assert "<em>both</em>" in inline("*both* of $f_*$", str)


def test_every_kind_of_block():
    assert shown("# Head") == "<h2>Head</h2>"
    assert shown("## Head") == "<h3>Head</h3>"
    assert shown("two\nlines") == "<p>two lines</p>"
    assert shown("1. a\n2. b\n   more") == "<ol><li>a</li><li>b more</li></ol>"
    assert shown("![A *b*.][path: title]") == "<figure>path: title: A *b*.</figure>"
    assert "<math" in shown("$$ x\n= 1 $$")
    table = shown("| a | b |\n|---|---|\n| $x$ | [c][d] |")
    assert '<th scope="col">a</th>' in table
    assert '<td><a href="#d">c</a></td>' in table


def test_a_model_is_a_list_of_its_parts():
    page = shown("```model\n$x$ | tokens\n$y$ | label of *x*\n```")
    assert page.count("<li>") == 2
    assert page.endswith("<small>label of *x*</small></li></ol>")
    assert "<strong>so</strong>, <em>much</em>" in inline("**so**, *much*", str)
