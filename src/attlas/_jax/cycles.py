"""The interval at which Python looks for cycles of objects that nothing refers to."""

import gc


def look_for_cycles_seldom() -> None:
    """Let Python look for unreachable cycles less often, in a process that attlas started.

    Importing, tracing and drawing create millions of objects that stay, and few cycles: looking for
    them took a fifth of collecting the tests, an eighth of a report and 3 % of checking claims. A
    report uses a tenth more memory for it.

    Examples:
        >>> look_for_cycles_seldom()
        >>> gc.get_threshold()
        (20000, 50, 50)
    """
    gc.set_threshold(20_000, 50, 50)
