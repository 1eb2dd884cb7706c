"""The figures of gpu.py as people read them: tables of at most 80 columns."""

from report import mib
from steps.inputs import MODELS


def machine(rates):
    return (
        f"Floor: products {rates['operations_per_second'] / 1e12:.3g} TFLOP/s "
        f"(side {rates['matrix_side']}), copies {rates['bytes_per_second'] / 1e9:.4g} GB/s,\n"
        f"a launch {rates['launch_seconds'] * 1e6:.2f} us; the faster of ebb and PyTorch in each"
    )


def row(name, worker, is_peer):
    if not worker["agrees"]:
        return f"{name:<17}LEARNS SOMETHING ELSE: losses differ by {worker['loss_difference']:.1e}"
    ratio, memory = worker["speed_beside_peer"], worker["memory"]
    spread = "" if is_peer else f" ({ratio['low']:.2f}-{ratio['high']:.2f})"
    reserved = mib(memory["reserved_bytes"]) if "reserved_bytes" in memory else "-"
    return (
        f"{name:<17}{worker['step_seconds'] * 1e3:>8.3f}{worker['steps_per_second']:>9.1f}"
        f"  {ratio['median']:.2f}{spread:<13}{worker['share_of_floor'] * 100:>5.0f} %"
        f"{mib(memory['peak_bytes']):>10}{reserved:>10}"
    )


def floor(result):
    timed = [worker for worker in result["workers"].values() if worker["agrees"]]
    parts = timed[0]["floor_seconds"]
    text = (
        f"  floor: arithmetic {parts['arithmetic'] * 1e3:.3f}, bytes {parts['bytes'] * 1e3:.3f} ms"
    )
    for name, worker in result["workers"].items():
        if worker.get("launches"):
            milliseconds = worker["floor_seconds"]["launches"] * 1e3
            text += f";\n  {name}: {worker['launches']} launches {milliseconds:.3f} ms"
    return text


def race(result):
    lines = [
        f"{MODELS[result['model']].title}, {result['precision']}",
        f"{'':<17}{'ms':>8}{'steps/s':>9}  {'x PyTorch':<17}{'floor':>7}{'peak MiB':>10}"
        f"{'reserved':>10}",
    ]
    for name, worker in result["workers"].items():
        lines.append(row(name, worker, name == result["peer"]))
    lines += [f"{name:<17}left out: {reason}" for name, reason in result["left_out"].items()]
    lines.append(floor(result))
    worst = max(w["loss_difference"] for w in result["workers"].values() if w["agrees"])
    lines.append(f"  losses within {worst:.0e}")
    if not result["quiet"]:
        lines.append(
            f"  NOT TO BE BELIEVED: other programs took up to {result['processors_others_took']:.1f}"
            " processors"
        )
    return "\n".join(lines)


def about(figures):
    versions = figures["versions"]
    driver = f", driver {figures['driver']}" if figures["driver"] else ""
    return (
        f"ebb on {figures['ebb_device']}, PyTorch on {figures['torch_device']}{driver}\n"
        f"ebb {versions['ebb']}, PyTorch {versions['torch']}, {figures['date']}"
    )


EXPLANATION = """\
x PyTorch: how many times as fast as its fastest mode, of pairs of runs side by
side, with quartiles. floor: the largest of the time that the step's products
take at the rate of one large product, that of Adam's bytes and a batch at the
rate of a copy, and, where steps are not captured, of their launches, as a share
of the step's. peak: most bytes allocated at once, without the batches; those of
PyTorch's captured modes include warm-up and capture. reserved: most held from
the device, batches included."""
