"""Where things are; also lets the tools import the comparison code of the tests."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFORMANCE = ROOT / "tests" / "conformance"
CHECKPOINTS = CONFORMANCE / "checkpoints"
GOLDENS = CONFORMANCE / "goldens"
TEXT = CONFORMANCE / "data" / "score_text.txt"
SMOLLM2 = Path(
    os.environ.get("LOCKSTEP_TEST_MODEL")
    or Path.home() / ".cache/lockstep/models/SmolLM2-135M-Instruct.Q4_1.gguf"
)
GEMMA3 = Path.home() / ".cache/lockstep/models/gemma-3-270m-q4_k_m.gguf"

sys.path.insert(0, str(CONFORMANCE))
