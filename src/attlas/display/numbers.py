"""Numbers for a reader: three digits, powers of ten, no false precision."""

import math

from markupsafe import Markup

MINUS = "\N{MINUS SIGN}"


def plain_number(value: float | int | None, digits: int = 3) -> str:
    """A number as text with a true minus sign, and e-notation outside 1e-4 to 1e5; a dash for None.

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
        else _grouped(f"{value:,.0f}")
    )


def whole_number(value: int) -> Markup:
    """An integer with all its digits, in groups of three.

    Examples:
        >>> print(whole_number(-3), whole_number(10**7).replace(chr(0x202F), " "))
        −3 10 000 000
    """
    return Markup("{}").format(_grouped(f"{value:,}"))


def _grouped(text: str) -> str:
    return text.replace("-", MINUS).replace(",", "\N{NARROW NO-BREAK SPACE}")


def number(value: float | int | None, digits: int = 3) -> Markup:
    """A number as markup, with a raised power of ten; a dash for None.

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


def duration(seconds: float | int | None) -> str:
    """A time in the unit in which it is read; a dash where it is unknown.

    Examples:
        >>> duration(12.3), duration(150), duration(7200), duration(3e5), duration(None)
        ('12 s', '2.5 min', '2.0 h', '3.5 d', '-')
    """
    if seconds is None:
        return "-"
    units = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
    for length, name in units:
        if seconds >= length:
            return f"{seconds / length:.1f} {name}"
    return f"{seconds:.0f} s"


def size(count: float | int | None) -> str:
    """A number of bytes in the unit in which it is read; a dash where it is unknown.

    Examples:
        >>> size(2.5e9), size(3e6), size(700), size(None)
        ('2.5 GB', '3.0 MB', '1 kB', '-')
    """
    if count is None:
        return "-"
    for length, name in ((1e9, "GB"), (1e6, "MB")):
        if count >= length:
            return f"{count / length:.1f} {name}"
    return f"{count / 1e3:.0f} kB"


def large_number(value: float | int) -> str:
    r"""A number of samples, steps or times in words, of two digits, or as a power of ten.

    Examples:
        >>> large_number(12.3), large_number(3981.07), large_number(79_432.0)
        ('12', '4,000', '79,000')
        >>> large_number(3.98e8), large_number(2.5e12), large_number(1.6e19)
        ('400 million', '2.5 trillion', '$2 \\times 10^{19}$')
        >>> large_number(float("inf")), large_number(0.0004)
        ('infinitely many', '0.0004')
    """
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "infinitely many"
    rounded = float(f"{value:.2g}")
    if abs(rounded) >= 1e15:
        mantissa, power = f"{value:.0e}".split("e")
        factor = "" if mantissa == "1" else rf"{mantissa} \times "
        return f"${factor}10^{{{int(power)}}}$"
    for length, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if abs(rounded) >= length:
            return f"{rounded / length:g} {name}"
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"
