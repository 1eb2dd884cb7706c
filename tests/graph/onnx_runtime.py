"""Runs ebb's ONNX models in onnxruntime: python onnx_runtime.py BUILD (needs onnx, onnxruntime and numpy)

The programs of that build write models, their inputs and ebb's results. onnx's checker takes each model, and results of
onnxruntime are within 1e-5 of ebb's largest, those of f16 within 1e-3. What onnxruntime has no kernel for is run by
onnx's reference.

With onnx 1.23.2 and onnxruntime 1.32.0, 9 models are at most 4.3e-07 apart, 1,083 samples of operators 2.7e-04 (in f16),
and 300 random programs 2.4e-07.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnx.reference
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel


def results_of(model, values):
    names = [output.name for output in model.graph.output]
    feeds = {given.name: values[given.name] for given in model.graph.input}
    try:
        return names, onnxruntime.InferenceSession(model.SerializeToString()).run(names, feeds)
    except NoKernel:
        return names, onnx.reference.ReferenceEvaluator(model).run(names, feeds)


def difference(path):
    """The largest difference from ebb, as a share of its largest value or of 1; a hundredth of it for f16."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    values = numpy.load(path.with_suffix(".npz"))
    worst = 0.0
    for name, result in zip(*results_of(model, values)):
        expected = values[name]
        assert result.shape == expected.shape and result.dtype == expected.dtype, (name, result, expected)
        result, expected = result.astype("f8"), expected.astype("f8")
        apart = numpy.where(numpy.isnan(expected) & numpy.isnan(result), 0, abs(result - expected))
        share = apart.max(initial=0) / abs(expected).max(initial=1)
        worst = numpy.maximum(worst, share / 100 if values[name].dtype == "f2" else share)
    return worst


WHAT = {"tests_graph": "models", "tests_ops": "samples of operators", "tests_properties": "random programs"}
programs = pathlib.Path(sys.argv[1]).resolve() / "tests"
with tempfile.TemporaryDirectory() as folder:
    for program, what in WHAT.items():
        place = pathlib.Path(folder) / program
        place.mkdir()
        subprocess.run([programs / program, "[.onnx]"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        found = {path.stem: difference(path) for path in sorted(place.glob("*.onnx"))}
        for name, worst in found.items():
            assert worst <= 1e-5, (name, worst)
        name = max(found, key=found.get)
        print(f"{len(found)} {what}: at most {found[name]:.1e} apart ({name})")
print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
