"""Bridge: trained models of other libraries, in one canonical form.

`from attlas.transformers import load_model` imports it at once: a function that is looked up later
would be hidden by the module of its name.
"""

from attlas.transformers.load_model import load_model

__all__ = ["load_model"]
