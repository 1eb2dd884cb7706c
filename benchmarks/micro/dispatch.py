"""Runs the micro-benchmarks of dispatch and allocation, and reduces them to a few figures in ns."""

import json
import os
import subprocess


def medians(program, pattern, seconds):
    output = subprocess.run(
        [
            program,
            f"--benchmark_filter={pattern}",
            "--benchmark_format=json",
            "--benchmark_repetitions=5",
            f"--benchmark_min_time={seconds / 5:g}",
            "--benchmark_enable_random_interleaving=true",
            "--benchmark_report_aggregates_only=true",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    runs = json.loads(output)["benchmarks"]
    scale = {"ns": 1, "us": 1e3, "ms": 1e6}
    return {
        run["run_name"]: run["real_time"] * scale[run["time_unit"]]
        for run in runs
        if run["aggregate_name"] == "median"
    }


def measure(build, seconds):
    folder = os.path.join(build, "benchmarks")
    times = medians(os.path.join(folder, "benchmark_dispatch"), ".", seconds)
    allocator = medians(
        os.path.join(folder, "benchmark_allocator"), "^same<(Ebb|Malloc)>/512$", seconds
    )

    def above_kernels(nodes):
        return times[f"prepared/{nodes}"] - times[f"kernels_alone/{nodes}"]

    node = (above_kernels(1000) - above_kernels(10)) / 990
    return {
        "untaped": {op: times[f"untaped<{op}>"] for op in ("Add", "Multiply", "Tanh")},
        "taped": {op: times[f"taped<{op}>"] for op in ("Add", "Multiply", "Tanh")},
        "chain": {op: times[f"chain<{op}>/1000"] / 1000 for op in ("Add", "Multiply", "Tanh")},
        "free_and_allocate": {
            "ebb": allocator["same<Ebb>/512"],
            "malloc": allocator["same<Malloc>/512"],
        },
        "prepared_node": node,
        "prepared_step": above_kernels(10) - 10 * node,
        "predicting_an_lstm": {  # over the same program alone on a twin
            form: times[f"large_lstm_predicted/{i}"] / times[f"large_lstm_on_a_twin/{i}"]
            for i, form in enumerate(("fused", "by_cells"))
        },
        "tiny_mlp": {mode: times[f"tiny_mlp_{mode}"] for mode in ("eager", "graph")},
    }
