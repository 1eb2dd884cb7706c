"""ebb beside PyTorch's eager mode on the CPU, and beside what bounds a step there."""

from steps import inputs, worker

EBB = {"ebb graph": "graph", "ebb eager": "eager"}
PYTHON = {
    "PyTorch default": "default",
    "PyTorch foreach": "foreach",
    "PyTorch fused": "fused",
    "PyTorch compiled": "compile",
}
CPP = "PyTorch C++"
PEER = [*PYTHON, CPP]
OPTIONAL = {"PyTorch compiled", CPP}  # need a C++ compiler
BOUND = {"products": "products", "fastest": "fastest", "stream": "stream"}


def commands(model, threads, build, weights, libtorch):
    kind = inputs.MODELS[model].kind
    common = ["--model", kind, "--threads", str(threads), "--weights", weights, "--mode"]
    ours = {name: worker.ebb(build, *common, mode) for name, mode in (EBB | BOUND).items()}
    theirs = {name: worker.torch(*common, mode) for name, mode in PYTHON.items()}
    if libtorch:
        theirs[CPP] = [libtorch, kind, str(threads), weights]
    return ours | theirs


def check_losses(workers):
    """The largest relative difference from PyTorch in the first ten steps; and of those that did
    not make them, which are no longer in `workers` then, why."""
    trained = {name: one for name, one in workers.items() if name not in BOUND}
    losses, lost = worker.first_losses(trained, OPTIONAL)
    for name in lost:
        del workers[name]
    expected = losses["PyTorch default"]
    worst = 0
    for name, values in losses.items():
        difference = worker.difference(values, expected)
        if difference > worker.SAME_LOSS["f32"]:
            raise worker.Failed(
                f"{name} learns something else: losses {values}, PyTorch's {expected}"
            )
        worst = max(worst, difference)
    return worst, lost


def race(model, threads, build, weights, libtorch, rounds, seconds):
    """One configuration: everything measured, as a dictionary. `libtorch` is a program, or None."""
    workers, lost = worker.start(commands(model, threads, build, weights, libtorch), OPTIONAL)
    try:
        difference, lost_in_steps = check_losses(workers)
        gemm = "oneDNN" if workers["ebb graph"].has_loaded("libdnnl") else "Eigen"
        for name, one in workers.items():
            one.choose_steps(seconds if name not in BOUND else seconds / 3)
        disturbed, others = worker.take_turns(workers, rounds)
        trained = [name for name in [*EBB, *PEER] if name in workers]
        memory = {name: workers[name].ask("memory") for name in trained}
        operations = {name: workers[name].ask("operations") for name in ("products", "fastest")}
    finally:
        worker.close(workers)

    peer = min(set(PEER) & set(trained), key=lambda name: workers[name].median())
    rate = operations["fastest"] / workers["fastest"].median()
    products, stream = workers["products"].median(), workers["stream"].median()
    result = {
        "model": model,
        "threads": threads,
        "largest_loss_difference": difference,
        "peer": peer,
        "left_out": lost | lost_in_steps,
        "ebb_products_by": gemm,
        "rounds_repeated": disturbed,
        "processors_others_took": others,
        "quiet": others <= worker.QUIET,
        "bound": {
            "products_seconds": products,
            "stream_seconds": stream,
            "operations": operations["products"],
            "fastest_operations_per_second": rate,
        },
        "workers": {},
    }
    for name in trained:
        one = workers[name]
        ratios = [b / a for a, b in zip(one.seconds, workers[peer].seconds)]
        result["workers"][name] = {
            "step_seconds": one.median(),
            "speed_beside_peer": worker.quartiles(ratios),
            "share_of_bound": (products + stream) / one.median(),
            "share_of_fastest": (operations["products"] / rate + stream) / one.median(),
            "memory": memory[name],
            "steps_in_a_run": one.steps,
            "runs_step_seconds": one.seconds,
        }
    return result
