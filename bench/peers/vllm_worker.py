"""One work of vLLM, in its own environment and process; prints the cells as JSON.

    vllm_worker.py MODEL_FOLDER WORK WORDS.json
"""

import json
import pathlib
import sys
import time

from vllm import LLM, SamplingParams

from serving import prompts_of
from works import GENERATE, PROMPTS, decode_cell


def seconds(llm, prompts, tokens):
    begin = time.monotonic()
    llm.generate([{"prompt_token_ids": p} for p in prompts],
                 SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True),
                 use_tqdm=False)
    return time.monotonic() - begin


def main():
    folder, work, words = sys.argv[1:]
    words = json.loads(pathlib.Path(words).read_text())
    rows = 1 if work == "prompt" else int(work.split("-")[2])
    llm = LLM(folder, dtype="bfloat16", max_model_len=4096, max_num_seqs=rows,
              enable_prefix_caching=False)
    seconds(llm, prompts_of(words, 1, PROMPTS[0]), 4)
    if work == "prompt":
        cells = {f"prompt {n}": n / seconds(llm, prompts_of(words, 1, n), 1) for n in PROMPTS}
    else:
        # The prompts' own time is measured apart, and taken off.
        context = int(work.split("-")[1])
        prompts = prompts_of(words, rows, context)
        reading = seconds(llm, prompts, 1)
        both = seconds(llm, prompts, 1 + GENERATE)
        cells = {decode_cell(rows, context): rows * GENERATE / (both - reading)}
    print(json.dumps(cells))


if __name__ == "__main__":
    main()
