"""No test downloads anything or leaves files outside its temporary folder."""

from __future__ import annotations

import os
import tempfile

HOME = tempfile.TemporaryDirectory(prefix="faithmeter-tests-")
os.environ |= {"HF_HOME": HOME.name, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "COLUMNS": "200"}

import datasets  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

torch.set_num_threads(1)  # tiny models are faster so, the more when the machine is busy
datasets.disable_progress_bars()
transformers.logging.disable_progress_bar()
transformers.logging.set_verbosity_error()
