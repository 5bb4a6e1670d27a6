"""Makes a folder for OpenVINO GenAI of an F16 GGUF file; runs in its environment.

    openvino_convert.py SOURCE.gguf int4|int8|fp16 FOLDER

OpenVINO GenAI reads GGUF itself and saves its own form; nncf compresses the weights as
`optimum-cli export openvino` does: int4 symmetric in groups of 64 with int8 embeddings, or int8.
"""

import pathlib
import shutil
import sys
import tempfile

import nncf
import openvino
import openvino_genai


def main():
    source, kind, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir()
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        link = pathlib.Path(work, source.name)
        link.symlink_to(source)
        openvino_genai.LLMPipeline(link, "CPU", enable_save_ov_model=True)
        for file in pathlib.Path(work).iterdir():
            if file != link and not file.name.startswith("openvino_model."):
                shutil.move(file, folder / file.name)
        core = openvino.Core()
        model = core.read_model(pathlib.Path(work, "openvino_model.xml"))
        if kind == "int4":
            model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT4_SYM,
                                          group_size=64, ratio=1.0)
        elif kind == "int8":
            model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)
        openvino.save_model(model, folder / "openvino_model.xml", compress_to_fp16=True)


if __name__ == "__main__":
    main()
