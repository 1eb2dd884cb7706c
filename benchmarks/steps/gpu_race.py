"""ebb beside PyTorch's modes on a GPU, and beside the floor that arithmetic, bytes and launches set
there."""

from dataclasses import dataclass

import torch

from steps import inputs, worker

EBB = {"ebb graph": "graph", "ebb eager": "eager", "ebb compiled": "compiled"}
PEER = {"PyTorch eager": "fused", "PyTorch graphs": "graph", "PyTorch compiled": "compile"}
REFERENCE = "PyTorch eager"  # whose losses the others have to have
# Bytes of an update per parameter: reads it, its two moments and its gradient, writes the first
# three. With bf16 the moments are f32 in ebb and bf16 in PyTorch; the lower figure counts.
ADAM_BYTES = {"f32": 28, "tf32": 28, "bf16": 14}
DTYPES = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Setting:
    build: str
    device: str  # ebb's
    peer_device: str
    precision: str
    threads: int
    rounds: int
    seconds: float  # of a run

    def ebb(self, *arguments):
        return worker.ebb(self.build, "--device", self.device, *self.common(), *arguments)

    def torch(self, *arguments):
        return worker.torch("--device", self.peer_device, *self.common(), *arguments)

    def common(self):
        return ["--precision", self.precision, "--threads", str(self.threads)]


def take_turns(workers, setting):
    for one in workers.values():
        one.choose_steps(setting.seconds)
        one.warm_up = max(1, one.steps // 5)  # a GPU at rest clocks down
    return worker.take_turns(workers, setting.rounds)


def rates(setting, side, floats):
    """What one product of squares, one copy and one operator on four floats take, in whichever of
    ebb and PyTorch is faster, as operations a second, bytes a second and seconds."""
    commands = {}
    for mode, size in (("fastest", side), ("copy", floats), ("launch", 1)):
        for name, command in (("ebb", setting.ebb), ("PyTorch", setting.torch)):
            commands[f"{name} {mode}"] = command("--mode", mode, "--size", str(size))
    workers, _ = worker.start(commands)
    try:
        take_turns(workers, setting)
    finally:
        worker.close(workers)
    seconds = {name: one.median() for name, one in workers.items()}

    def fastest(mode):
        return min(seconds[f"{name} {mode}"] for name in ("ebb", "PyTorch"))

    return {
        "operations_per_second": 2 * side**3 / fastest("fastest"),
        "bytes_per_second": 2 * 4 * floats / fastest("copy"),
        "launch_seconds": fastest("launch"),
        "matrix_side": side,
        "floats_copied": floats,
        "seconds": seconds,
    }


def commands(kind, setting, weights):
    common = ["--model", kind, "--weights", weights, "--mode"]
    ours = {name: setting.ebb(*common, mode) for name, mode in EBB.items()}
    peer = {name: setting.torch(*common, mode) for name, mode in PEER.items()}
    if setting.peer_device == "cpu":
        del peer["PyTorch graphs"]
    return ours | peer


def check_losses(workers, optional, same):
    """Of each: how far its first losses are from the reference's, and, where that is too far, what
    they are; such a worker is not one of `workers` then."""
    losses, lost = worker.first_losses(workers, optional)
    checked = {}
    for name, values in losses.items():
        difference = worker.difference(values, losses[REFERENCE])
        checked[name] = {"loss_difference": difference, "agrees": difference <= same}
        if not checked[name]["agrees"]:
            checked[name] |= {"losses": values, "expected_losses": losses[REFERENCE]}
            workers.pop(name).close()
    return checked, lost


def figures_of(one, peer, floor, memory):
    step = one.median()
    seconds = max(part for part in floor.values() if part is not None)
    return {
        "step_seconds": step,
        "step_seconds_quartiles": worker.quartiles(one.seconds),
        "steps_per_second": 1 / step,
        "speed_beside_peer": worker.quartiles([b / a for a, b in zip(one.seconds, peer.seconds)]),
        "floor_seconds": floor,
        "share_of_floor": seconds / step,
        "memory": memory,
        "steps_in_a_run": one.steps,
        "runs_step_seconds": one.seconds,
    }


def race(model, setting, weights, machine):
    """One model: everything measured, as a dictionary. `machine` is what rates() gave."""
    optional = set(PEER) - {REFERENCE}
    parameters, batch_bytes = inputs.write(model, weights, DTYPES[setting.precision])
    workers, lost = worker.start(commands(inputs.MODELS[model].kind, setting, weights), optional)
    try:
        operations = workers["ebb graph"].ask("operations")
        # PyTorch: kernels that its profiler sees. ebb: operators, a lower bound.
        launches = {"ebb eager": workers["ebb graph"].ask("operators")}
        checked, lost_in_steps = check_losses(
            workers, optional, worker.SAME_LOSS[setting.precision]
        )
        launches["PyTorch eager"] = workers["PyTorch eager"].ask("kernels")
        repeated, others = take_turns(workers, setting)
        memory = {name: one.ask("memory") for name, one in workers.items()}
    finally:
        worker.close(workers)

    bytes_moved = ADAM_BYTES[setting.precision] * parameters + batch_bytes
    peer = min((name for name in PEER if name in workers), key=lambda n: workers[n].median())
    for name, one in workers.items():
        count = launches.get(name)  # none where steps are captured
        floor = {
            "arithmetic": operations / machine["operations_per_second"],
            "bytes": bytes_moved / machine["bytes_per_second"],
            "launches": count and count * machine["launch_seconds"],
        }
        checked[name] |= {"launches": count} | figures_of(one, workers[peer], floor, memory[name])
    return {
        "model": model,
        "precision": setting.precision,
        "peer": peer,
        "parameters": parameters,
        "operations": operations,
        "bytes": bytes_moved,
        "left_out": lost | lost_in_steps,
        "rounds_repeated": repeated,
        "processors_others_took": others,
        "quiet": others <= worker.QUIET,
        "workers": checked,
    }
