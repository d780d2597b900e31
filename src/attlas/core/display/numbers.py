"""Numbers for a reader: three digits, powers of ten, no false precision."""

import math

from markupsafe import Markup

MINUS = "\N{MINUS SIGN}"


def plain_number(value: float | int | None, digits: int = 3) -> str:
    """A number as text.

    Args:
        value: the number, None where there is none.
        digits: significant digits.

    Returns:
        Text with a true minus sign and e-notation outside 1e-4 to 1e5.

    Examples:
        >>> plain_number(0.000012345), plain_number(-3.0), plain_number(None)
        ('1.23e−5', '−3', '–')
    """
    if value is None or math.isnan(value):
        return "–" if value is None else "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value and not 1e-4 <= abs(value) < 1e5:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{_trimmed(mantissa)}e{int(power)}".replace("-", MINUS)
    return (
        f"{value:.{digits}g}".replace("-", MINUS)
        if abs(value) < 10**digits
        else (f"{value:,.0f}".replace("-", MINUS).replace(",", "\N{NARROW NO-BREAK SPACE}"))
    )


def number(value: float | int | None, digits: int = 3) -> Markup:
    """A number as markup, with a raised power of ten.

    Args:
        value: the number, None where there is none.
        digits: significant digits.

    Returns:
        Safe markup.

    Examples:
        >>> print(number(2.5e-16))
        2.5 × 10<sup>−16</sup>
    """
    text = plain_number(value, digits)
    if "e" in text:
        mantissa, power = text.split("e")
        factor = "" if mantissa == "1" else f"{mantissa} × "
        return Markup("{}10<sup>{}</sup>").format(factor, power)
    return Markup("{}").format(text)


def _trimmed(mantissa: str) -> str:
    return mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
