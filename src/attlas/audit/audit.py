r"""What attention theory says about a trained Transformer, at three levels."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from attlas.audit.deep_level.deep_level import deep_level
from attlas.audit.deep_level.tangent_drift import tangent_drift
from attlas.audit.finding import Finding
from attlas.audit.findings import findings_of
from attlas.audit.model_audit import ModelAudit
from attlas.audit.model_bounds import model_bounds
from attlas.audit.sequence_loss import judged_batch
from attlas.audit.weights_level.weights_level import weights_level
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.interop.load_model import load_model
from attlas.interop.slicing import prove_slicing
from attlas.interop.trained_transformer import TrainedTransformer

Level = Literal["weights", "data", "deep"]
LEVELS: tuple[Level, ...] = ("weights", "data", "deep")
Progress = Callable[[str, int, int], None]

_CONTEXT = 512
